"""Stack `Cluster`: EKS, its add-ons and its system nodes; of an existing cluster, what it lacks."""

from __future__ import annotations

from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.environment_stack import EnvironmentStack
from infra.network import vpc_of
from modelyard.aws.adopted_cluster import AdoptedCluster
from modelyard.aws.cluster import InferenceCluster
from modelyard.aws.cluster_access import TeamAccess
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.spec import Environment
from modelyard.spec.existing_cluster import ExistingCluster

_EFS_DRIVER_ROLE: Final = "efs-driver-role"


class ClusterStack(EnvironmentStack):
    concern = "cluster"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: EKS cluster and system nodes"
        )
        if settings.cluster.existing:
            self._adopt(settings.cluster.existing)
            return
        vpc = vpc_of(self)
        made = InferenceCluster(
            self,
            "Cluster",
            name=settings.cluster_name,
            version=settings.cluster.version,
            vpc=vpc,
            subnets=vpc.private_subnets,
            compute=settings.cluster.compute,
            public_access_cidrs=settings.cluster.public_access_cidrs,
            admins=settings.cluster.admins,
            viewers=settings.cluster.viewers,
            teams=_teams(settings),
            addon_versions=settings.cluster.addon_versions,
            system_instance_types=settings.cluster.system_nodes.instance_types,
            system_node_count=settings.cluster.system_nodes.count,
            system_release_version=settings.cluster.system_release,
            prefix_delegation=settings.network.prefix_delegation,
            lustre=settings.cache.file_system == "lustre",
            efs_identity=settings.mounts_by_role,
            support_type=settings.cluster.support_type,
            control_plane_tier=settings.cluster.control_plane_tier,
            zonal_shift=settings.cluster.zonal_shift,
            image_cache=settings.image_cache,
            log_retention_days=settings.cluster.log_retention_days,
            deletion_protection=settings.deletion_protection,
            removal_policy=self.removal_policy,
        )
        # The network stack has tagged them, which the construct cannot see.
        Annotations.of(made.cluster).acknowledge_warning("@aws-cdk/aws-eks:clusterMustManuallyTagSubnet")
        self._hand_over(made.cluster.cluster_security_group_id, made.efs_driver)

    def _hand_over(self, security_group: str, efs_driver: PodIdentityRole | None) -> None:
        self.publish("security-group-id", security_group)
        if efs_driver:
            self.publish(_EFS_DRIVER_ROLE, efs_driver.role_arn)

    def _adopt(self, existing: ExistingCluster) -> None:
        settings = self.settings
        adopted = AdoptedCluster(
            self,
            "Cluster",
            name=settings.cluster_name,
            version=settings.cluster.version,
            compute=settings.cluster.compute,
            has=existing.has,
            admins=settings.cluster.admins,
            viewers=settings.cluster.viewers,
            teams=_teams(settings),
            addon_versions=settings.cluster.addon_versions,
            lustre=settings.cache.file_system == "lustre",
            efs_identity=settings.mounts_by_role,
        )
        self._hand_over(existing.security_group, adopted.efs_driver)


def _teams(settings: Environment) -> dict[str, TeamAccess]:
    return {
        name: TeamAccess(
            principals=team.principals,
            edits=[settings.team_namespace(name)],
            reads=[settings.namespace],
        )
        for name, team in settings.teams.items()
    }


def cluster_security_group(stack: EnvironmentStack) -> ec2.ISecurityGroup:
    """The security group of the API server and every node, created by EKS; other stacks refer to it and never
    change it."""
    return ec2.SecurityGroup.from_security_group_id(
        stack, "ClusterSecurityGroup", stack.read(ClusterStack, "security-group-id"), mutable=False
    )


def nodes_security_group(stack: EnvironmentStack) -> ec2.ISecurityGroup:
    """The security group of nodes, which mount the model cache: the cluster's, unless an existing cluster's
    nodes have one of their own."""
    existing = stack.settings.cluster.existing
    if existing and existing.node_security_group:
        return ec2.SecurityGroup.from_security_group_id(
            stack, "NodesSecurityGroup", existing.node_security_group, mutable=False
        )
    return cluster_security_group(stack)


def efs_driver_role(stack: EnvironmentStack) -> str:
    """ARN of the role as which the EFS driver mounts the model cache."""
    return stack.read(ClusterStack, _EFS_DRIVER_ROLE)
