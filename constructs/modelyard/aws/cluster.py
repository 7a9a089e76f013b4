"""The EKS cluster: private, audited, encrypted, with separate nodes for everything that is not a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, cast

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.addons import ClusterAddons
from modelyard.aws.audit_log import AuditLog
from modelyard.aws.cluster_access import TeamAccess, access_by_principal, admit
from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.image_cache import may_fill
from modelyard.aws.karpenter_permissions import TAGGED_AT_LAUNCH
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.system_nodes import SystemNodeGroup
from modelyard.names import AUTO_MODE_POOLS
from modelyard.releases import addon_version, node_release

_AUTO_MODE_NODE_POLICIES: Final = (
    "AmazonEKSWorkerNodeMinimalPolicy",
    "AmazonEC2ContainerRegistryPullOnly",
)
# Managed policies that EKS Auto Mode needs in the cluster role (EKS user guide, cluster IAM role of Auto
# Mode).
_AUTO_MODE_CLUSTER_POLICIES: Final = (
    "AmazonEKSClusterPolicy",
    "AmazonEKSComputePolicy",
    "AmazonEKSBlockStoragePolicy",
    "AmazonEKSLoadBalancingPolicy",
    "AmazonEKSNetworkingPolicy",
)


class InferenceCluster(Construct):
    """An EKS cluster ready for Karpenter, or in Auto Mode.

    Access only by EKS access entries. The creator of the cluster gets no admin access: that grant is
    invisible, and here it would go to CloudFormation's role. Without `admins` nobody is locked out for good:
    an IAM administrator of the account can always create an access entry. A principal in several lists gets
    one entry with the sum of its permissions.

    Args:
        name: Name of the cluster; a literal, because names of roles and logs are derived from it.
        version: Kubernetes minor version, such as 1.36.
        vpc: VPC of the cluster.
        subnets: Private subnets in at least two zones; default: the private subnets of `vpc`.
        compute: Who launches nodes: Karpenter, which you install on the system nodes, or EKS Auto Mode.
        public_access_cidrs: CIDRs that may reach the API server over the internet; default: none.
        admins: ARNs of IAM roles or users that administer the cluster.
        viewers: ARNs of IAM roles or users that may read everything except secrets.
        teams: Team name to its access.
        addon_versions: EKS add-on name to a version that overrides the tested version.
        system_instance_types: Graviton types of the system nodes, in order of preference; not in Auto Mode.
        system_node_count: Number of system nodes; not in Auto Mode.
        system_release_version: AMI release of the system nodes; default: the tested one.
        prefix_delegation: Whether nodes get IP addresses in blocks of sixteen; not in Auto Mode.
        lustre: Whether pods mount FSx for Lustre.
        efs_identity: Whether the EFS driver mounts as a role of its own, `efs_driver`, which `EfsCache` takes
            as its only client; not beside `S3FilesCache`, which gives the driver a role.
        support_type: Whether EKS upgrades the cluster when standard support of its version ends (`standard`);
            `extended` costs six times as much from then on.
        control_plane_tier: Size of a provisioned control plane, such as tier-xl, which is billed by the hour.
        zonal_shift: Whether traffic can be moved out of an impaired zone.
        image_cache: Prefix of the repositories in ECR that nodes may fill, see `ImageCache`; default: none.
        log_retention_days: Days for which the control plane's log is kept.
        deletion_protection: Whether EKS refuses to delete the cluster until a deploy turns this off.
        removal_policy: What happens to key and log when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        version: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet] | None = None,
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        public_access_cidrs: Sequence[str] = (),
        admins: Sequence[str] = (),
        viewers: Sequence[str] = (),
        teams: Mapping[str, TeamAccess] | None = None,
        addon_versions: Mapping[str, str] | None = None,
        system_instance_types: Sequence[str] = ("m7g.large", "m6g.large"),
        system_node_count: int = 2,
        system_release_version: str | None = None,
        prefix_delegation: bool = False,
        lustre: bool = False,
        efs_identity: bool = False,
        support_type: Literal["standard", "extended"] = "standard",
        control_plane_tier: str = "standard",
        zonal_shift: bool = False,
        image_cache: str | None = None,
        log_retention_days: int = 90,
        deletion_protection: bool = True,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        subnets = vpc.private_subnets if subnets is None else subnets
        self.secrets_key = EncryptionKey(
            self,
            "SecretsKey",
            description=f"Kubernetes secrets of {name}",
            removal_policy=removal_policy,
        )
        """Encrypts Kubernetes secrets."""
        # Otherwise EKS creates this group, with no retention.
        self.audit_log = AuditLog(
            self,
            "ControlPlaneLog",
            name=f"/aws/eks/{name}/cluster",
            retention_days=log_retention_days,
            removal_policy=removal_policy,
        )
        """The log of the control plane."""
        endpoint = (
            eks.EndpointAccess.PUBLIC_AND_PRIVATE.only_from(*public_access_cidrs)
            if public_access_cidrs
            else eks.EndpointAccess.PRIVATE
        )
        auto_mode = compute == "auto-mode"
        self.cluster = eks.Cluster(
            self,
            "Cluster",
            cluster_name=name,
            version=eks.KubernetesVersion.of(version),
            vpc=vpc,
            vpc_subnets=[ec2.SubnetSelection(subnets=list(subnets))],
            endpoint_access=endpoint,
            # Auto Mode is the construct's default; its pools would compete with Karpenter's.
            default_capacity_type=eks.DefaultCapacityType.AUTOMODE
            if auto_mode
            else eks.DefaultCapacityType.NODEGROUP,
            default_capacity=None if auto_mode else 0,
            compute=self._auto_mode_compute(name, image_cache) if auto_mode else None,
            role=self._auto_mode_role(name) if auto_mode else None,
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
            # Tiers above standard are billed by the hour.
            control_plane_scaling_tier=None
            if control_plane_tier == "standard"
            else eks.ControlPlaneScalingTier.of(control_plane_tier),
        )
        """The cluster; its `cluster_security_group` is attached to the API server and to every node."""
        resource = self.cluster.node.default_child
        assert isinstance(resource, eks.CfnCluster)
        resource.deletion_protection = deletion_protection
        # EKS defaults to EXTENDED, which costs six times as much once standard support has ended.
        resource.upgrade_policy = eks.CfnCluster.UpgradePolicyProperty(support_type=support_type.upper())
        if zonal_shift:
            resource.zonal_shift_config = eks.CfnCluster.ZonalShiftConfigProperty(enabled=True)
        resource.node.add_dependency(self.audit_log)

        admit(self, cast(eks.ICluster, self.cluster), access_by_principal(admins, viewers, teams or {}))

        stated = addon_versions or {}
        addons = ClusterAddons(
            scope=self,
            cluster_name=self.cluster.cluster_name,
            versions=lambda addon: stated.get(addon) or addon_version(addon, version),
        )
        networking = [] if auto_mode else addons.before_nodes(prefix_delegation=prefix_delegation)
        self.system_nodes: SystemNodeGroup | None = None
        """Nodes for everything that is not a model; None in Auto Mode."""
        if auto_mode:
            rest = addons.in_every_mode(lustre=lustre)
        else:
            self.system_nodes = SystemNodeGroup(
                self,
                "SystemNodes",
                cluster=cast(eks.ICluster, self.cluster),
                version=version,
                subnets=subnets,
                instance_types=system_instance_types,
                count=system_node_count,
                image_cache=image_cache,
                release_version=system_release_version or node_release(version),
            )
            self.system_nodes.nodegroup.node.add_dependency(*networking)
            rest = addons.after_nodes(lustre=lustre)
            for addon in rest:
                addon.node.add_dependency(self.system_nodes.nodegroup)
        self.addons: Mapping[str, eks.CfnAddon] = MappingProxyType(
            {addon.addon_name: addon for addon in (*networking, *rest)}
        )
        """EKS add-on name to its resource."""
        self.efs_driver: PodIdentityRole | None = addons.efs_mount_role(rest) if efs_identity else None
        """Role as which the EFS driver mounts, without permissions of its own; None unless `efs_identity`."""

    def _auto_mode_compute(self, name: str, image_cache: str | None) -> eks.ComputeConfig:
        # The rendered NodeClasses name this role; EKS admits it because the cluster's own pools use it too.
        role = iam.Role(
            self,
            "NodeRole",
            role_name=f"{name}-node",
            description="Nodes that EKS Auto Mode launches",
            assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
            managed_policies=_managed(_AUTO_MODE_NODE_POLICIES),
        )
        if image_cache:
            may_fill(role, image_cache)
        return eks.ComputeConfig(node_pools=list(AUTO_MODE_POOLS), node_role=role)

    def _auto_mode_role(self, name: str) -> iam.Role:
        return iam.Role(
            self,
            "ClusterRole",
            description="Control plane in Auto Mode",
            # EKS tags its sessions; without sts:TagSession they are denied.
            assumed_by=iam.ServicePrincipal("eks.amazonaws.com").with_session_tags(),
            managed_policies=_managed(_AUTO_MODE_CLUSTER_POLICIES),
            # Inline: the cluster launches nodes as soon as it exists.
            inline_policies={"TaggedNodes": self._tagged_nodes(name)},
        )

    def _tagged_nodes(self, name: str) -> iam.PolicyDocument:
        """The managed policies allow only EKS' own tags, but the node classes have the environment's tags:
        node launches would be denied (EKS user guide, auto-learn-iam, custom tags; here restricted to the
        cluster's name and to the resources of a launch)."""
        tagged = {"aws:RequestTag/eks:eks-cluster-name": name}
        return iam.PolicyDocument(
            statements=[
                iam.PolicyStatement(
                    sid="LaunchTaggedNodes",
                    actions=["ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:RunInstances"],
                    resources=[self._ec2(kind) for kind in TAGGED_AT_LAUNCH],
                    conditions={
                        "StringEquals": tagged,
                        "StringLike": {
                            "aws:RequestTag/eks:kubernetes-node-class-name": "*",
                            "aws:RequestTag/eks:kubernetes-node-pool-name": "*",
                        },
                    },
                ),
                iam.PolicyStatement(
                    sid="MakeTaggedInterfaces",
                    actions=["ec2:CreateNetworkInterface"],
                    resources=[self._ec2("network-interface")],
                    conditions={
                        "StringEquals": tagged,
                        "StringLike": {"aws:RequestTag/eks:kubernetes-cni-node-name": "*"},
                    },
                ),
            ]
        )

    def _ec2(self, kind: str) -> str:
        return Stack.of(self).format_arn(service="ec2", resource=kind, resource_name="*")


def _managed(names: Sequence[str]) -> list[iam.IManagedPolicy]:
    return [iam.ManagedPolicy.from_aws_managed_policy_name(name) for name in names]
