"""The EKS cluster, its nodes that are not for models, and who may use it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from modelyard.releases import addon_version, addons, addons_everywhere, node_release
from modelyard.spec.document import DNS_LABEL, Document, ObjectName
from modelyard.spec.existing_cluster import ExistingCluster
from modelyard.spec.network import Cidr

RoleArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$")]
AmiAlias = Annotated[str, Field(pattern=r"^(al2023|bottlerocket)@(latest|v[0-9][0-9.]*)$")]
KubernetesVersion = Literal["1.35", "1.36"]


class SystemNodes(Document):
    """The managed node group for everything but models: controllers, monitoring, Karpenter itself."""

    instance_types: tuple[str, ...] = ("m7g.large", "m6g.large")
    """Graviton types, tried in order."""
    count: Annotated[int, Field(ge=2, le=20)] = 2
    """Number of nodes, spread over the zones; at least two, because Karpenter runs two replicas on two
    nodes."""
    release_version: Annotated[str, Field(pattern=r"^1\.[0-9]{2,3}\.[0-9]+-[0-9]{8}$")] | None = None
    """AMI release, such as 1.36.2-20260714; default: the tested one for the Kubernetes version. EKS takes no
    release back."""


class GeneralNodes(Document):
    """Graviton nodes that Karpenter adds for pods that do not fit the system nodes, such as weight
    downloads."""

    vcpu_limit: Annotated[int, Field(ge=0, le=10000)] | None = None
    """Maximum vCPU at once; 0 for none. Default: 32; none in an existing cluster, where pods of others could
    land on these nodes, which have no taint."""
    ami: AmiAlias = "al2023@v20260714"
    """AMI alias, pinned to a release."""


GENERAL_VCPU: Final = 32
"""vCPU of general nodes at once in a cluster that Modelyard makes."""

# Settings of a cluster that Modelyard makes; one that is there has its own.
_OF_OURS = (
    "support_type",
    "control_plane_tier",
    "deletion_protection",
    "public_access_cidrs",
    "system_nodes",
)


class Cluster(Document):
    """The Amazon EKS cluster: created by Modelyard, or an existing one."""

    name: ObjectName | None = None
    """Default: `modelyard-ENVIRONMENT`."""
    existing: ExistingCluster | None = None
    """A cluster that is there, called `name`, at `version`; default: Modelyard creates one. Needs
    `network.vpc`."""
    version: KubernetesVersion = "1.36"
    """Kubernetes minor version, in EKS standard support; an older cluster is upgraded first, by one minor at
    a time."""
    support_type: Literal["standard", "extended"] = "standard"
    """`standard`: EKS upgrades the cluster when its version's standard support ends; `extended`: it keeps the
    version, and costs six times as much from then on."""
    control_plane_tier: Literal["standard", "tier-xl", "tier-2xl", "tier-4xl", "tier-8xl"] = "standard"
    """Provisioned size of the control plane; above `standard` it is billed by the hour."""
    deletion_protection: bool | None = None
    """Prevent deletion of the cluster until a deploy has turned this off; default: true if `removal` is
    `retain`."""
    zonal_shift: bool = False
    """Let Amazon Application Recovery Controller move traffic out of an impaired zone."""
    compute: Literal["karpenter", "auto-mode"] = "karpenter"
    """Node provisioner: Karpenter on a small node group, or EKS Auto Mode; pools are the same."""
    node_repair: bool = True
    """Replace nodes whose accelerator or kubelet has failed for ten or thirty minutes; always on in Auto
    Mode."""
    addon_versions: dict[
        str, Annotated[str, Field(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+$")]
    ] = Field(default_factory=dict)
    """Versions of EKS add-ons that differ from the tested ones, such as `vpc-cni: v1.22.4-eksbuild.3`."""
    public_access_cidrs: tuple[Cidr, ...] = ()
    """Networks that may reach the API server over the internet; default: none, private endpoint only."""
    admins: tuple[RoleArn, ...] = ()
    """IAM principals with cluster administration."""
    viewers: tuple[RoleArn, ...] = ()
    """IAM principals that may read everything but secrets."""
    system_nodes: SystemNodes = SystemNodes.model_construct()
    """Not used in Auto Mode, which has its own system nodes."""
    general_nodes: GeneralNodes = GeneralNodes.model_construct()
    log_retention_days: Literal[7, 14, 30, 60, 90, 180, 365] = 90
    """Retention of the control-plane and VPC flow logs."""

    def addon_version(self, name: str) -> str:
        """Version of the EKS add-on `name` that is installed."""
        return self.addon_versions.get(name) or addon_version(name, self.version)

    def has(self, component: str) -> bool:
        """Whether somebody else has installed `component`, or an EKS add-on, so that Modelyard does not."""
        if self.existing is None:
            return False
        return component in self.existing.has or component in addons_everywhere()

    @property
    def runs_own_karpenter(self) -> bool:
        """Whether Modelyard installs Karpenter, and makes its identities."""
        return not (self.auto_mode or self.has("karpenter"))

    @property
    def general_vcpu(self) -> int:
        """Maximum vCPU of general nodes; 0 for none."""
        stated = self.general_nodes.vcpu_limit
        if stated is not None:
            return stated
        return 0 if self.existing else GENERAL_VCPU

    @property
    def system_release(self) -> str:
        """AMI release of the system nodes."""
        return self.system_nodes.release_version or node_release(self.version)

    @model_validator(mode="after")
    def _release_of_this_minor(self) -> Self:
        release = self.system_nodes.release_version
        if release and not release.startswith(f"{self.version}."):
            raise ValueError(
                f"systemNodes.releaseVersion {release} is not of Kubernetes {self.version}; leave it out to get "
                f"{node_release(self.version)}"
            )
        return self

    @model_validator(mode="after")
    def _existing_has_its_own(self) -> Self:
        if self.existing is None:
            return self
        if self.name is None:
            raise ValueError("existing needs name: the cluster's name in EKS")
        fields = type(self).model_fields
        if stated := [
            fields[each].alias or each for each in _OF_OURS if getattr(self, each) != fields[each].default
        ]:
            raise ValueError(
                f"{', '.join(stated)}: settings of a cluster that Modelyard creates; with existing, leave them out"
            )
        if kept := [name for name in self.addon_versions if self.has(name)]:
            raise ValueError(
                f"addonVersions of {', '.join(kept)}: the existing cluster has its own; leave them out"
            )
        launched_for_us = self.auto_mode or self.has("karpenter")
        if launched_for_us and not self.existing.node_role:
            raise ValueError(
                "existing needs nodeRole: the name of the IAM role that the cluster's own "
                f"{'NodeClasses name' if self.auto_mode else 'Karpenter passes to nodes'}"
            )
        if self.existing.node_role and not launched_for_us:
            raise ValueError(
                "existing.nodeRole is for a Karpenter that is there (has: {karpenter: VERSION}); ours has its own role"
            )
        return self

    @field_validator("addon_versions")
    @classmethod
    def _known_addons(cls, value: dict[str, str]) -> dict[str, str]:
        if unknown := sorted(set(value) - set(addons())):
            raise ValueError(f"unknown add-on {', '.join(unknown)}; known are {', '.join(addons())}")
        return value

    @property
    def auto_mode(self) -> bool:
        return self.compute == "auto-mode"

    @field_validator("public_access_cidrs")
    @classmethod
    def _not_the_world(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "0.0.0.0/0" in value:
            raise ValueError("must not contain 0.0.0.0/0; name the networks of your offices or your VPN")
        return value


class Team(Document):
    """A team that owns or calls models, with its own namespace."""

    principals: Annotated[tuple[RoleArn, ...], Field(min_length=1)]
    """IAM roles or users, with edit access to their namespace and read access to the models' namespace."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL, max_length=63)] | None = None
    """Default: the team's name."""
    accelerators: dict[str, Annotated[int, Field(ge=0)]] | None = None
    """Maximum accelerators, by type, that the team's models (`owner.team`) may hold at maximum replicas, such
    as `l40s: 16`; 0 for unlisted types. Default: no limit."""
    notebooks: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Accelerators, by type, that pods in the team's own namespace may hold; default: none."""
