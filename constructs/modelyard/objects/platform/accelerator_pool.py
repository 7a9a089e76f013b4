"""A NodePool with its node class for one accelerator, and prices for instance types without a public
price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.hardware import InstanceType, Prices, accelerator_of
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.node_taints import taints
from modelyard.objects.platform.node_class import (
    NodeClass,
    lifetime,
    node_class,
    node_class_reference,
    one_of,
)
from modelyard.planning.admission import candidates, priced_by, root_volume_gib, uses_local_disks
from modelyard.planning.placement import launchable
from modelyard.spec import Environment, Pool

# Models take minutes to load: an empty node stays this long, so that a rollout can reuse it.
_CONSOLIDATE_AFTER = "30m"

# In strict environments, drifted nodes are replaced only between 02:00 and 04:00 UTC.
_NO_DRIFT = {"nodes": "0", "reasons": ["Drifted"], "schedule": "0 4 * * *", "duration": "22h"}

# The NVIDIA GPU operator then runs nothing on the node (gpu-operator, controllers/state_manager.go).
_WITHOUT_OPERANDS = {"nvidia.com/gpu.deploy.operands": "false"}


def accelerator_pool(*, name: str, pool: Pool, environment: Environment) -> Iterator[Manifest]:
    """Nodes for one accelerator: only instance types that the plan knows, tainted, never consolidated while a
    model runs on them."""
    types = launchable(pool, environment.region)
    yield node_class(
        name=name,
        environment=environment,
        settings=NodeClass(
            ami=pool.ami,
            volume_gib=root_volume_gib(pool),
            zones=environment.pool_zones(pool),
            fastest_volume=True,
            parallel_pull=True,
            local_disks=bool(types) and uses_local_disks(candidates(pool.accelerator, pool.instance_types)),
            interfaces=_efa_interfaces(types) if pool.fabric == "efa" else (),
            reservations=[reservation.id for reservation in pool.reservations],
            placement_group=pool.placement_group,
        ),
    )
    yield manifest(
        api_version="karpenter.sh/v1",
        kind="NodePool",
        name=name,
        labels=platform_labels("nodes"),
        spec=_node_pool(name, pool, environment, types),
    )


def price_overlays(environment: Environment, prices: Prices) -> Iterator[Manifest]:
    """On-demand prices that pools state for types that Karpenter cannot price, and so would never launch."""
    for instance_type, price in sorted(stated_prices(environment, prices).items()):
        name = f"price-{instance_type.replace('.', '-')}"
        yield manifest(
            api_version="karpenter.sh/v1alpha1",
            kind="NodeOverlay",
            name=name,
            labels=platform_labels("nodes"),
            spec={
                "requirements": [one_of("node.kubernetes.io/instance-type", [instance_type])],
                "price": f"{price:g}",
            },
        )


def stated_prices(environment: Environment, prices: Prices) -> dict[str, float]:
    """Instance types without a public price, and the US dollars per hour that a pool states for them."""
    return {
        instance_type: pool.prices[instance_type]["on-demand"]
        for pool in environment.pools.values()
        for instance_type in priced_by(pool, environment, prices)
    }


def leaves_out_operator(environment: Environment, vendor: str) -> bool:
    """Whether the GPU operator of an existing cluster has to stay off these nodes: it would install a
    driver, a container runtime and a second device plugin on images that have theirs."""
    cluster = environment.cluster
    return cluster.existing is not None and vendor == "nvidia" and not cluster.has("nvidia-device-plugin")


def _efa_interfaces(types: list[InstanceType]) -> list[dict[str, Any]]:
    """One interface with IP addresses, and an EFA-only device on every network card, so that addresses are
    left for pods.

    Without this, Karpenter attaches every interface with its own addresses (Karpenter, EC2NodeClass
    networkInterfaces; devices: hardware/data/fabric.yaml). A pool of several families takes the highest
    device index among them.
    """
    cards = min((t.efa_interfaces for t in types if t.efa_interfaces), default=0)
    first_card = max((t.efa_devices.first_card for t in types), default=0)
    other_cards = max((t.efa_devices.other_cards for t in types), default=0)
    first = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    return [
        first,
        *(
            {
                "networkCardIndex": card,
                "deviceIndex": first_card if card == 0 else other_cards,
                "interfaceType": "efa-only",
            }
            for card in range(cards)
        ),
    ]


def _node_pool(
    name: str,
    pool: Pool,
    environment: Environment,
    types: list[InstanceType],
) -> dict[str, Any]:
    accelerator = accelerator_of(pool.accelerator)
    spec: dict[str, Any] = {
        "template": {
            "metadata": {
                "labels": {
                    "modelyard.dev/accelerator": pool.accelerator,
                    "modelyard.dev/pool": name,
                    **(_WITHOUT_OPERANDS if leaves_out_operator(environment, accelerator.vendor) else {}),
                }
            },
            "spec": {
                "nodeClassRef": node_class_reference(name, environment),
                "requirements": [
                    one_of("node.kubernetes.io/instance-type", sorted(instance.name for instance in types)),
                    one_of("karpenter.sh/capacity-type", list(pool.capacity)),
                    one_of("topology.kubernetes.io/zone", list(environment.pool_zones(pool))),
                ],
                "taints": taints(environment, name, pool),
                **lifetime(environment, serves=True),
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": _CONSOLIDATE_AFTER,
            "budgets": [{"nodes": "1"}, *([_NO_DRIFT] if environment.strict else [])],
        },
    }
    if pool.nodes:
        # One more while a drifted node is replaced; a static pool accepts no other limit.
        return {**spec, "replicas": pool.nodes, "limits": {"nodes": str(pool.nodes + 1)}}
    return {**spec, "limits": {accelerator.resource: str(pool.limit)}}
