"""A Karpenter NodePool with its EC2NodeClass for one accelerator."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from modelyard.hardware import InstanceType, accelerator_of
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.node_class import node_class, one_of
from modelyard.planning.placement import candidates, launchable, uses_local_disks
from modelyard.spec import Environment, Pool

# nodeadm pulls and unpacks layers in parallel with this gate; AL2023 images know it since 2025.
_FAST_PULL = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
"""

# Models take minutes to load: a node without pods stays this long, so that a rollout in place finds it again.
_CONSOLIDATE_AFTER = "30m"

# Where every warning counts, drifted nodes are replaced between 02:00 and 04:00 UTC alone.
_NO_DRIFT = {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 4 * * *", "duration": "22h"}


class AcceleratorPool(Construct):
    """Nodes for one accelerator: only the instance types that the plan knows, tainted, and never consolidated while
    a model runs on them."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, pool: Pool, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id)
        labels = platform_labels("nodes")
        types = launchable(pool, environment.region)
        manifest(
            self,
            "NodeClass",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
            name=name,
            labels=labels,
            spec=_node_class(pool, environment, types),
        )
        manifest(
            self,
            "NodePool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            name=name,
            labels=labels,
            spec=_node_pool(name, pool, environment, types),
        )


def _node_class(pool: Pool, environment: Environment, types: list[InstanceType]) -> dict[str, Any]:
    spec = node_class(environment, ami=pool.ami, volume_gib=pool.root_volume_gib, fastest_volume=True)
    if pool.ami.startswith("al2023"):
        spec["userData"] = _FAST_PULL
    if types and uses_local_disks(candidates(pool)):
        spec["instanceStorePolicy"] = "RAID0"
    if pool.fabric == "efa":
        spec["networkInterfaces"] = _efa_interfaces(types)
    if pool.reservations:
        spec["capacityReservationSelectorTerms"] = [{"id": reservation} for reservation in pool.reservations]
    return spec


def _efa_interfaces(types: list[InstanceType]) -> list[dict[str, Any]]:
    """One interface with an address, and an EFA device without one on every network card: addresses stay for pods.

    Without this Karpenter attaches every interface with addresses of its own (Karpenter, EC2NodeClass networkInterfaces;
    EC2 user guide, EFA on p5: device 1 of every card).
    """
    cards = min((t.efa_interfaces for t in types if t.efa_interfaces), default=0)
    first = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    return [
        first,
        *({"networkCardIndex": card, "deviceIndex": 1, "interfaceType": "efa-only"} for card in range(cards)),
    ]


def _node_pool(name: str, pool: Pool, environment: Environment, types: list[InstanceType]) -> dict[str, Any]:
    accelerator = accelerator_of(pool.accelerator)
    return {
        "template": {
            "metadata": {
                "labels": {"modelyard.dev/accelerator": pool.accelerator, "modelyard.dev/pool": name}
            },
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
                "requirements": [
                    one_of("node.kubernetes.io/instance-type", sorted(instance.name for instance in types)),
                    one_of("karpenter.sh/capacity-type", list(pool.capacity)),
                    one_of("topology.kubernetes.io/zone", list(environment.pool_zones(pool))),
                ],
                "taints": [{"key": accelerator.taint, "value": "true", "effect": "NoSchedule"}],
                "expireAfter": "Never",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": _CONSOLIDATE_AFTER,
            "budgets": [{"nodes": "1"}, *([_NO_DRIFT] if environment.strict else [])],
        },
        "limits": {accelerator.resource: str(pool.limit)},
    }
