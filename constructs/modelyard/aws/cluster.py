"""The EKS cluster: private, audited, encrypted, and with a system node group that Karpenter does not own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from modelyard.aws.addons import add_addons_after_nodes, add_addons_before_nodes
from modelyard.aws.audit_log import AuditLog
from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.system_nodes import SystemNodeGroup


class InferenceCluster(Construct):
    """An EKS cluster without Auto Mode, ready for Karpenter.

    Access is by EKS access entries alone. Nobody becomes administrator by having created the cluster: that grant is
    invisible, and here it would go to CloudFormation's role. With no `admins` nobody is locked out for good, since an
    IAM administrator of the account can always create an access entry.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        version: str,  # Kubernetes minor version, such as "1.36"
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],  # private subnets in two zones or more
        public_access_cidrs: Sequence[str] = (),  # default: a private endpoint alone
        admins: Sequence[str] = (),  # ARNs of IAM roles or users
        viewers: Sequence[str] = (),
        system_instance_types: Sequence[str] = ("m7g.large", "m6g.large"),
        system_node_count: int = 2,
        log_retention_days: int = 90,
        deletion_protection: bool = True,  # `cdk destroy` fails until a deploy has switched it off
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,  # of the key and the log
    ) -> None:
        super().__init__(scope, construct_id)
        self.secrets_key = EncryptionKey(
            self,
            "SecretsKey",
            description=f"Kubernetes secrets of {name}",
            removal_policy=removal_policy,
        )
        # EKS would make this group itself, and keep its events for ever.
        audit_log = AuditLog(
            self,
            "ControlPlaneLog",
            name=f"/aws/eks/{name}/cluster",
            retention_days=log_retention_days,
            removal_policy=removal_policy,
        )
        endpoint = (
            eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*public_access_cidrs)
            if public_access_cidrs
            else eks.EndpointAccess.PRIVATE
        )
        self.cluster = eks.Cluster(
            self,
            "Cluster",
            cluster_name=name,
            version=eks.KubernetesVersion.of(version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            endpoint_access=endpoint,
            # Auto Mode is the default of the construct; its pools and Karpenter's would compete.
            default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
            default_capacity=0,
            bootstrap_cluster_creator_admin_permissions=False,
            # The add-ons below install these components; changing this later replaces the cluster.
            bootstrap_self_managed_addons=False,
            secrets_encryption_key=self.secrets_key,
            cluster_logging=[
                eks.ClusterLoggingTypes.API,
                eks.ClusterLoggingTypes.AUDIT,
                eks.ClusterLoggingTypes.AUTHENTICATOR,
                eks.ClusterLoggingTypes.CONTROLLER_MANAGER,
                eks.ClusterLoggingTypes.SCHEDULER,
            ],
        )
        resource = self.cluster.node.default_child
        assert isinstance(resource, eks.CfnCluster)
        resource.deletion_protection = deletion_protection
        # EKS defaults to EXTENDED, which costs six times as much from the day standard support ends.
        resource.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type="STANDARD")
        resource.node.add_dependency(audit_log)

        self._grant("Admins", admins, "AmazonEKSClusterAdminPolicy")
        # Not AmazonEKSAdminViewPolicy: that one reads secrets.
        self._grant("Viewers", viewers, "AmazonEKSViewPolicy")

        networking = add_addons_before_nodes(self, cluster_name=self.cluster.cluster_name)
        self.system_nodes = SystemNodeGroup(
            self,
            "SystemNodes",
            cluster=cast(eks.ICluster, self.cluster),
            subnets=subnets,
            instance_types=system_instance_types,
            count=system_node_count,
        )
        self.system_nodes.nodegroup.node.add_dependency(*networking)
        for addon in add_addons_after_nodes(self, cluster_name=self.cluster.cluster_name):
            addon.node.add_dependency(self.system_nodes.nodegroup)

    def _grant(self, construct_id: str, principals: Sequence[str], policy: str) -> None:
        entries = Construct(self, construct_id)
        for principal in principals:
            eks.AccessEntry(
                entries,
                principal,
                cluster=cast(eks.ICluster, self.cluster),
                principal=principal,
                access_policies=[
                    eks.AccessPolicy.from_access_policy_name(
                        policy, access_scope_type=eks.AccessScopeType.CLUSTER
                    )
                ],
            )
