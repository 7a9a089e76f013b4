"""EKS add-ons in install order, each at a pinned version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import EFS_DRIVER, EFS_NODE_ACCOUNT, FSX_DRIVER, METRICS_SERVER


@dataclass(frozen=True, kw_only=True)
class ClusterAddons:
    """The add-ons of one cluster.

    `has`: whether the cluster has an add-on already, however it was installed. `overwrite`: whether settings
    are overwritten that somebody else has made; otherwise a conflict fails the deploy.
    """

    scope: Construct
    cluster_name: str
    versions: Callable[[str], str]  # add-on name to version
    has: Callable[[str], bool] = lambda _: False
    overwrite: bool = True

    def before_nodes(self, *, prefix_delegation: bool = False) -> list[eks.CfnAddon]:
        """Add-ons that a node needs to become Ready; DaemonSets, so they are healthy without any node."""
        # Without the network policy agent, every NetworkPolicy in the cluster is accepted and ignored.
        network: dict[str, object] = {"enableNetworkPolicy": "true"}
        if prefix_delegation:
            network["env"] = {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}
        return [
            # Only the CNI may change interfaces and addresses, not every process on the node. The Pod
            # Identity agent runs in the host network, so the two do not wait for each other.
            *self._driver("VpcCni", "vpc-cni", "AmazonEKS_CNI_Policy", ["aws-node"], configuration=network),
            *self._addon("KubeProxy", "kube-proxy"),
            *self._addon("PodIdentityAgent", "eks-pod-identity-agent"),
        ]

    def after_nodes(self, *, lustre: bool = False) -> list[eks.CfnAddon]:
        """Add-ons that need a node to run on: CloudFormation waits until they are healthy."""
        return [
            *self._addon("CoreDns", "coredns"),
            *self._driver(
                "EbsDriver",
                "aws-ebs-csi-driver",
                "service-role/AmazonEBSCSIDriverPolicy",
                ["ebs-csi-controller-sa"],
            ),
            # Reports a GPU that has fallen off the bus to Karpenter's node repair and to operators.
            *self._addon("NodeMonitoring", "eks-node-monitoring-agent"),
            *self.in_every_mode(lustre=lustre),
        ]

    def in_every_mode(self, *, lustre: bool = False) -> list[eks.CfnAddon]:
        """Add-ons that EKS Auto Mode does not include."""
        drivers = self._driver(
            "EfsDriver",
            EFS_DRIVER,
            "service-role/AmazonEFSCSIDriverPolicy",
            ["efs-csi-controller-sa"],
        )
        if lustre:
            # Mounting needs no permission; the controller's permissions are for creating file systems, which
            # CloudFormation does here.
            drivers += self._addon("FsxDriver", FSX_DRIVER)
        return [*drivers, *self._addon("MetricsServer", METRICS_SERVER)]

    def efs_mount_role(self, made: Iterable[eks.CfnAddon]) -> PodIdentityRole | None:
        """A role as which the EFS driver among `made` mounts, without permissions of its own; None if it is
        not among them."""
        drivers = [addon for addon in made if addon.addon_name == EFS_DRIVER]
        if not drivers:
            return None
        role = PodIdentityRole(
            self.scope, "EfsMountRole", description="EFS CSI driver: mount the model cache"
        )
        association = role.associate(
            cluster_name=self.cluster_name, namespace="kube-system", service_account=EFS_NODE_ACCOUNT
        )
        # Only pods that start afterwards get credentials; others would mount as the node.
        drivers[0].node.add_dependency(association)
        return role

    def _driver(
        self,
        construct_id: str,
        name: str,
        policy: str,
        service_accounts: Sequence[str],
        configuration: Mapping[str, object] | None = None,
    ) -> list[eks.CfnAddon]:
        if self.has(name):
            return []
        role = PodIdentityRole(
            self.scope,
            f"{construct_id}Role",
            description=f"{name}: {policy.rpartition('/')[2]}",
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy)],
        )
        role.trust(cluster_name=self.cluster_name, namespace="kube-system", service_accounts=service_accounts)
        return self._addon(
            construct_id,
            name,
            configuration=configuration,
            identities=[
                eks.CfnAddon.PodIdentityAssociationProperty(role_arn=role.role_arn, service_account=account)
                for account in service_accounts
            ],
        )

    def _addon(
        self,
        construct_id: str,
        name: str,
        *,
        configuration: Mapping[str, object] | None = None,
        identities: Sequence[eks.CfnAddon.PodIdentityAssociationProperty] = (),
    ) -> list[eks.CfnAddon]:
        if self.has(name):
            return []
        # The L2 construct supports neither Pod Identity nor conflict resolution (aws/aws-cdk#34903).
        return [
            eks.CfnAddon(
                self.scope,
                construct_id,
                addon_name=name,
                addon_version=self.versions(name),
                cluster_name=self.cluster_name,
                configuration_values=json.dumps(configuration) if configuration else None,
                pod_identity_associations=list(identities) or None,
                resolve_conflicts="OVERWRITE" if self.overwrite else "NONE",
                preserve_on_delete=False,
            )
        ]
