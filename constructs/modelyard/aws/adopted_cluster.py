"""A cluster that somebody else manages: what it lacks for model servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from modelyard.aws.addons import ClusterAddons
from modelyard.aws.cluster_access import TeamAccess, access_by_principal, admit
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.releases import addon_version, addons_everywhere


class AdoptedCluster(Construct):
    """The EKS add-ons that an existing cluster lacks, and access entries.

    Nothing that is there is changed: the cluster itself, its nodes, its VPC CNI, kube-proxy and CoreDNS, and
    the add-ons in `has`. An add-on that somebody has installed by other means fails the deploy where the two
    conflict, instead of being overwritten. The cluster's authentication mode must include the API, and a
    principal must not have an access entry yet.

    Args:
        name: Name of the cluster.
        version: Its Kubernetes minor version, such as 1.36.
        compute: Who launches nodes: Karpenter, or EKS Auto Mode.
        has: Names of EKS add-ons that it has already.
        admins: ARNs of IAM roles or users that administer the cluster.
        viewers: ARNs of IAM roles or users that may read everything except secrets.
        teams: Team name to its access.
        addon_versions: EKS add-on name to a version that overrides the tested version.
        lustre: Whether pods mount FSx for Lustre.
        efs_identity: Whether the EFS driver, if it is installed here, mounts as a role of its own,
            `efs_driver`; a driver that is there keeps what it has.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        version: str,
        compute: Literal["karpenter", "auto-mode"] = "karpenter",
        has: Collection[str] = (),
        admins: Sequence[str] = (),
        viewers: Sequence[str] = (),
        teams: Mapping[str, TeamAccess] | None = None,
        addon_versions: Mapping[str, str] | None = None,
        lustre: bool = False,
        efs_identity: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        admit(
            self,
            eks.Cluster.from_cluster_attributes(self, "Cluster", cluster_name=name),
            access_by_principal(admins, viewers, teams or {}),
        )
        there, stated = {*has, *addons_everywhere()}, addon_versions or {}
        addons = ClusterAddons(
            scope=self,
            cluster_name=name,
            versions=lambda addon: stated.get(addon) or addon_version(addon, version),
            has=there.__contains__,
            overwrite=False,
        )
        made = (
            addons.in_every_mode(lustre=lustre)
            if compute == "auto-mode"
            else [*addons.before_nodes(), *addons.after_nodes(lustre=lustre)]
        )
        self.addons: Mapping[str, eks.CfnAddon] = MappingProxyType({each.addon_name: each for each in made})
        """EKS add-on name to its resource."""
        self.efs_driver: PodIdentityRole | None = addons.efs_mount_role(made) if efs_identity else None
        """Role as which the EFS driver mounts; None if the cluster has a driver already."""
