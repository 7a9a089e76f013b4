"""What a model costs an hour: at least, and at most."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.planning.placement import Placement
from modelyard.spec.model import Replicas


@dataclass(frozen=True)
class Cost:
    """US dollars an hour on demand; None where AWS publishes no price. `idle_accelerators` are paid for at the floor
    and used by no replica of this model."""

    nodes_floor: int
    nodes_ceiling: int
    floor: float | None
    ceiling: float | None
    idle_accelerators: int


def nodes_for(replicas: int, *, accelerators: int, per_node: int, zones: int) -> int:
    """Nodes for `replicas`, packed as densely as spreading them over `zones` allows."""
    packed = -(-replicas // max(1, per_node // accelerators))
    return max(packed, min(replicas, zones))


def plan_cost(
    placement: Placement, replicas: Replicas, *, accelerators: int, zones: int, region: str
) -> Cost:
    """Floor: fewest replicas on the cheapest admitting type. Ceiling: most replicas on the dearest."""
    prices = [t.price(region).usd_per_hour for t in placement.instance_types]
    known = [price for price in prices if price is not None]
    per_node = placement.cheapest.accelerator_count
    low = nodes_for(replicas.min, accelerators=accelerators, per_node=per_node, zones=zones)
    high = nodes_for(replicas.max, accelerators=accelerators, per_node=per_node, zones=zones)
    return Cost(
        nodes_floor=low,
        nodes_ceiling=high,
        floor=low * min(known) if known else None,
        ceiling=high * max(known) if len(known) == len(prices) else None,
        idle_accelerators=low * per_node - replicas.min * accelerators,
    )
