"""Settings shared by all launched nodes, as Karpenter's EC2NodeClass or as the NodeClass of EKS Auto Mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from modelyard.hardware import platform_facts
from modelyard.names import DISCOVERY_TAG, ENVIRONMENT_TAG, POD_SUBNETS_TAG
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.spec import Environment

_VOLUME = {"volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
# gp3's maximum: images of ten gigabytes unpack as fast as the volume writes, while the node is already
# billed.
_FASTEST: Final = {"iops": 16000, "throughput": 1000}

_NODEADM_PULL = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
"""
_BOTTLEROCKET_PULL = """\
[settings.container-runtime]
snapshotter = "soci"

[settings.container-runtime-plugins.soci-snapshotter]
pull-mode = "parallel-pull-unpack"
"""


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """Settings of a node class.

    Auto Mode brings its own AMIs, pulls layers in parallel and uses local disks by default, so it ignores
    `ami`, `local_disks` and `pods`.
    """

    ami: str
    volume_gib: int
    zones: Sequence[str] = ()  # default: the environment's
    fastest_volume: bool = False
    parallel_pull: bool = False
    local_disks: bool = False
    pods: int | None = None  # maximum pods per node; default: limited by its network interfaces
    interfaces: Sequence[dict[str, Any]] = ()
    reservations: Sequence[str] = ()
    placement_group: str | None = None


def node_class(*, name: str, environment: Environment, settings: NodeClass) -> Manifest:
    """The node class: the cluster's subnets, security group and role, IMDSv2, encrypted disks."""
    auto = environment.cluster.auto_mode
    group, kind = _kind(environment)
    return manifest(
        api_version=f"{group}/v1",
        kind=kind,
        name=name,
        labels=platform_labels("nodes"),
        spec=_auto_mode(environment, settings) if auto else _karpenter(environment, settings),
    )


def node_class_reference(name: str, environment: Environment) -> dict[str, str]:
    """`nodeClassRef` of a NodePool."""
    group, kind = _kind(environment)
    return {"group": group, "kind": kind, "name": name}


def _kind(environment: Environment) -> tuple[str, str]:
    auto = environment.cluster.auto_mode
    return ("eks.amazonaws.com", "NodeClass") if auto else ("karpenter.k8s.aws", "EC2NodeClass")


def instance_label(environment: Environment, name: str) -> str:
    """The well-known node label of an instance property, such as `instance-category`."""
    domain = "eks.amazonaws.com" if environment.cluster.auto_mode else "karpenter.k8s.aws"
    return f"{domain}/{name}"


def one_of(key: str, values: list[str]) -> dict[str, Any]:
    """A NodePool requirement with operator `In`."""
    return {"key": key, "operator": "In", "values": values}


def lifetime(environment: Environment, *, serves: bool) -> dict[str, str]:
    """Expiry settings of a NodePool's template. `serves`: whether models run on its nodes.

    Expiry ignores disruption budgets and do-not-disrupt, so it would kill loaded models. EKS Auto Mode
    requires it: at most 21 days, including the time for a drain (EKS user guide, automode; AWS
    builders.flash, 2025-04).
    """
    if environment.cluster.auto_mode:
        return {"expireAfter": "480h", "terminationGracePeriod": "24h"}
    return {"expireAfter": "Never" if serves else "720h"}


def _karpenter(environment: Environment, settings: NodeClass) -> dict[str, Any]:
    # Bottlerocket keeps images and pods on its second volume.
    al2023 = settings.ami.startswith("al2023")
    ebs = {
        **_VOLUME,
        **(_FASTEST if settings.fastest_volume else {}),
        "volumeSize": f"{settings.volume_gib}Gi",
    }
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": settings.ami}],
        **_identity(environment),
        **_network(environment, settings),
        "blockDeviceMappings": [{"deviceName": "/dev/xvda" if al2023 else "/dev/xvdb", "ebs": ebs}],
        # One hop ends at the node: pods cannot reach IMDS for the node's credentials.
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
    }
    if settings.parallel_pull and platform_facts().pulls_in_parallel(settings.ami):
        spec["userData"] = _NODEADM_PULL if al2023 else _BOTTLEROCKET_PULL
    if settings.local_disks:
        spec["instanceStorePolicy"] = "RAID0"
    if settings.pods:
        spec["kubelet"] = {"maxPods": settings.pods}
    if settings.interfaces:
        spec["networkInterfaces"] = list(settings.interfaces)
    return spec


def _auto_mode(environment: Environment, settings: NodeClass) -> dict[str, Any]:
    volume = {"size": f"{settings.volume_gib}Gi"}
    spec: dict[str, Any] = {
        "role": _node_role(environment) or f"{environment.cluster_name}-node",
        **_network(environment, settings),
        "ephemeralStorage": {**volume, **(_FASTEST if settings.fastest_volume else {})},
        # Otherwise NetworkPolicies are accepted and ignored.
        "networkPolicy": "DefaultAllow",
    }
    if environment.network.pod_cidr:  # both fields are required together
        cluster = environment.cluster_name
        spec["podSubnetSelectorTerms"] = [{"tags": {POD_SUBNETS_TAG: cluster}}]
        spec["podSecurityGroupSelectorTerms"] = [{"tags": {"aws:eks:cluster-name": cluster}}]
    if settings.interfaces:
        spec["advancedNetworking"] = {"networkInterfaces": list(settings.interfaces)}
    return spec


def _node_role(environment: Environment) -> str | None:
    """The role of nodes that an existing cluster's own Karpenter, or Auto Mode, launches."""
    existing = environment.cluster.existing
    return existing.node_role if existing else None


def _identity(environment: Environment) -> dict[str, str]:
    """What Karpenter gives to nodes: our instance profile, or one that it makes of somebody else's role."""
    if role := _node_role(environment):
        return {"role": role}
    return {"instanceProfile": f"{environment.cluster_name}-node"}


def _security_groups(environment: Environment) -> list[dict[str, Any]]:
    """The cluster's, by the tag that EKS sets; of an existing cluster, the one that its file names."""
    if existing := environment.cluster.existing:
        return [{"id": existing.nodes_join}]
    return [{"tags": {"aws:eks:cluster-name": environment.cluster_name}}]


def _network(environment: Environment, settings: NodeClass) -> dict[str, Any]:
    """Fields with the same names in both kinds of classes."""
    cluster = environment.cluster_name
    zones = settings.zones or environment.availability_zones
    existing = environment.network.vpc
    spec: dict[str, Any] = {
        # Existing subnets cannot be tagged from here.
        "subnetSelectorTerms": [{"id": existing.private_subnets[zone]} for zone in zones]
        if existing
        else [{"tags": {DISCOVERY_TAG: cluster}}],
        "securityGroupSelectorTerms": _security_groups(environment),
        "tags": {**environment.tags, ENVIRONMENT_TAG: environment.name},
    }
    if settings.reservations:
        spec["capacityReservationSelectorTerms"] = [{"id": identity} for identity in settings.reservations]
    if settings.placement_group:
        spec["placementGroupSelector"] = {"name": settings.placement_group}
    return spec
