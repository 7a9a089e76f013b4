"""EKS add-ons in the order in which a cluster comes up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.pod_identity import PodIdentityRole


def add_addons_before_nodes(scope: Construct, *, cluster_name: str) -> list[eks.CfnAddon]:
    """What a node needs to become Ready; all DaemonSets, so they are healthy with no node at all."""
    return [
        # Without the network policy agent, every NetworkPolicy in the cluster is accepted and ignored.
        _addon(scope, "VpcCni", "vpc-cni", cluster_name, configuration={"enableNetworkPolicy": "true"}),
        _addon(scope, "KubeProxy", "kube-proxy", cluster_name),
        _addon(scope, "PodIdentityAgent", "eks-pod-identity-agent", cluster_name),
    ]


def add_addons_after_nodes(scope: Construct, *, cluster_name: str) -> list[eks.CfnAddon]:
    """What needs a node to run on: CloudFormation waits for these to become healthy."""
    ebs_driver = _driver_role(scope, "EbsDriverRole", "AmazonEBSCSIDriverPolicy")
    efs_driver = _driver_role(scope, "EfsDriverRole", "AmazonEFSCSIDriverPolicy")
    return [
        _addon(scope, "CoreDns", "coredns", cluster_name),
        _addon(
            scope,
            "EbsDriver",
            "aws-ebs-csi-driver",
            cluster_name,
            identities=[
                eks.CfnAddon.PodIdentityAssociationProperty(
                    role_arn=ebs_driver.role_arn, service_account="ebs-csi-controller-sa"
                )
            ],
        ),
        _addon(
            scope,
            "EfsDriver",
            "aws-efs-csi-driver",
            cluster_name,
            identities=[
                eks.CfnAddon.PodIdentityAssociationProperty(
                    role_arn=efs_driver.role_arn, service_account="efs-csi-controller-sa"
                )
            ],
        ),
        # Tells Karpenter's node repair and the operator of a GPU that has fallen off the bus.
        _addon(scope, "NodeMonitoring", "eks-node-monitoring-agent", cluster_name),
        _addon(scope, "MetricsServer", "metrics-server", cluster_name),
    ]


def _driver_role(scope: Construct, construct_id: str, policy: str) -> PodIdentityRole:
    return PodIdentityRole(
        scope,
        construct_id,
        description=f"CSI controller: {policy}",
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(f"service-role/{policy}")],
    )


def _addon(
    scope: Construct,
    construct_id: str,
    name: str,
    cluster_name: str,
    *,
    configuration: Mapping[str, object] | None = None,
    identities: Sequence[eks.CfnAddon.PodIdentityAssociationProperty] = (),
) -> eks.CfnAddon:
    # The L2 knows neither Pod Identity nor conflict resolution (aws/aws-cdk#34903). No version: EKS picks the default
    # one for the cluster's Kubernetes version, so a cluster upgrade does not meet an add-on it cannot run.
    return eks.CfnAddon(
        scope,
        construct_id,
        addon_name=name,
        cluster_name=cluster_name,
        configuration_values=json.dumps(configuration) if configuration else None,
        pod_identity_associations=list(identities) or None,
        resolve_conflicts="OVERWRITE",
        preserve_on_delete=False,
    )
