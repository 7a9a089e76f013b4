"""Hourly cost of a model: floor and ceiling, by capacity type, and the unused part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from modelyard.hardware import InstanceType, Prices
from modelyard.planning.placement import Placement
from modelyard.spec.operation import Replicas
from modelyard.spec.pool import CapacityType, Pool


@dataclass(frozen=True)
class NodePrice:
    """US dollars per hour of one node of one capacity type; None if neither published nor stated."""

    least: float | None
    most: float | None
    basis: str


@dataclass(frozen=True)
class CapacityCost:
    """US dollars per hour if every node has this capacity type. `basis`: the source of the prices.

    The spot floor is None unless the environment file states a price or AWS was queried: the market sets it.
    Nodes in a reservation add no cost to the reservation, which is billed whether used or not: `committed`.
    """

    capacity: CapacityType
    floor: float | None
    ceiling: float | None
    basis: str

    @property
    def committed(self) -> bool:
        return self.capacity == "reserved"


@dataclass(frozen=True)
class Cost:
    """US dollars per hour; None if AWS publishes no price and the environment file states none.

    `floor` and `ceiling`: lowest and highest over the pool's capacity types, `by_capacity`. Where a lower
    price is possible but unknown (spot), `floor` is its upper bound and `floor_at_most` is set.
    `idle_accelerators`: paid for at the floor, used by no replica of this model; `stranded`: their cost.
    `node_price`: one node at the floor. `usd_per_replica`: a replica's share of its nodes, idle accelerators
    included.
    """

    nodes_floor: int
    nodes_ceiling: int
    floor: float | None
    ceiling: float | None
    idle_accelerators: int
    by_capacity: tuple[CapacityCost, ...] = ()
    floor_at_most: bool = False
    node_price: float | None = None
    usd_per_replica: float | None = None
    stranded: float | None = None
    zones: int = 1


@dataclass(frozen=True)
class PoolCost:
    """The nodes of one instance type in a pool, with its models at minimum replicas packed as densely as
    possible. US dollars per hour; `stranded` is the cost of the accelerators that no model uses."""

    pool: str
    instance_type: str
    nodes: int
    accelerators: int
    idle_accelerators: int
    floor: float | None

    @property
    def stranded(self) -> float | None:
        if not self.idle_accelerators:
            return 0.0
        return None if self.floor is None else self.floor * self.idle_accelerators / self.accelerators


@dataclass(frozen=True)
class Lodger:
    """One model at minimum replicas on the nodes of `placement`. `accelerators`: per replica."""

    placement: Placement
    replicas: int
    accelerators: int
    cost: Cost


def nodes_for(replicas: int, *, accelerators: int, per_node: int, zones: int) -> int:
    """Nodes for `replicas`, packed as densely as the spread over `zones` allows."""
    packed = -(-replicas // max(1, per_node // accelerators)) * -(-accelerators // per_node)
    return max(packed, min(replicas, zones))


def node_price(instance: InstanceType, pool: Pool, capacity: CapacityType, prices: Prices) -> NodePrice:
    """The price of one node: stated in the environment file, or else published by AWS."""
    if (stated := pool.prices.get(instance.name, {}).get(capacity)) is not None:
        return NodePrice(stated, stated, "stated in the environment file")
    listed = prices.of(instance).usd_per_hour
    if capacity == "spot":
        spot = prices.spot(instance.name, pool.zones)
        if spot is not None:
            return NodePrice(
                spot, listed, f"spot price of {prices.day}; the market sets it, never above on demand"
            )
        # Karpenter sets no maximum spot price, so EC2 caps spot at the on-demand price.
        return NodePrice(None, listed, "set by the market, never above on demand")
    if capacity == "on-demand":
        return NodePrice(listed, listed, "list price" if listed is not None else "no public price")
    if listed is None:
        return NodePrice(None, None, "no public price; a Capacity Block is paid in advance")
    return NodePrice(listed, listed, "on-demand rate of a reservation, billed used or not")


def plan_cost(
    placement: Placement, replicas: Replicas, *, accelerators: int, zones: int, prices: Prices
) -> Cost:
    """Floor: minimum replicas on the cheapest fitting type. Ceiling: maximum replicas on the most
    expensive."""
    per_node = placement.cheapest.accelerator_count
    low = nodes_for(replicas.min, accelerators=accelerators, per_node=per_node, zones=zones)
    high = nodes_for(replicas.max, accelerators=accelerators, per_node=per_node, zones=zones)
    offers = {
        capacity: [node_price(t, placement.pool, capacity, prices) for t in placement.instance_types]
        for capacity in placement.pool.capacity
    }
    known = [
        price
        for nodes in offers.values()
        for node in nodes
        if (price := node.most if node.least is None else node.least) is not None
    ]
    most = [node.most for nodes in offers.values() for node in nodes]
    dearest = [price for price in most if price is not None]
    cheapest = min(known) if known else None
    idle = low * per_node - replicas.min * accelerators
    one = max(1, replicas.min)
    nodes_of_one = nodes_for(one, accelerators=accelerators, per_node=per_node, zones=zones)
    return Cost(
        nodes_floor=low,
        nodes_ceiling=high,
        floor=None if cheapest is None else low * cheapest,
        ceiling=high * max(dearest) if len(dearest) == len(most) else None,
        idle_accelerators=idle,
        by_capacity=tuple(_capacity_cost(c, nodes, low, high) for c, nodes in offers.items()),
        floor_at_most=cheapest is not None and any(_unknown_below(c, nodes) for c, nodes in offers.items()),
        node_price=cheapest,
        usd_per_replica=None if cheapest is None else nodes_of_one * cheapest / one,
        stranded=None if cheapest is None else idle * cheapest / per_node,
        zones=zones,
    )


def _capacity_cost(capacity: CapacityType, prices: list[NodePrice], low: int, high: int) -> CapacityCost:
    least = [node.least for node in prices if node.least is not None]
    most = [node.most for node in prices if node.most is not None]
    # Karpenter launches no type on demand without a price, so the known prices are all that count.
    floor_known = least and (len(least) == len(prices) or capacity == "on-demand")
    return CapacityCost(
        capacity=capacity,
        floor=low * min(least) if floor_known else None,
        ceiling=high * max(most) if len(most) == len(prices) else None,
        basis=" or ".join(dict.fromkeys(node.basis for node in prices)),
    )


def _unknown_below(capacity: CapacityType, prices: list[NodePrice]) -> bool:
    return capacity != "on-demand" and any(node.least is None for node in prices)


def sum_of_costs(costs: Iterable[Cost]) -> tuple[CapacityCost, ...]:
    """Sums by capacity type over the models whose pools allow it; None if one of the costs is unknown."""
    found: dict[CapacityType, list[CapacityCost]] = defaultdict(list)
    for cost in costs:
        for offer in cost.by_capacity:
            found[offer.capacity].append(offer)
    return tuple(
        CapacityCost(
            capacity,
            _sum([offer.floor for offer in offers]),
            _sum([offer.ceiling for offer in offers]),
            "; ".join(dict.fromkeys(offer.basis for offer in offers)),
        )
        for capacity, offers in sorted(found.items())
    )


def _sum(amounts: list[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def pool_costs(lodgers: Iterable[Lodger]) -> tuple[PoolCost, ...]:
    """Cost of the pools at the floor when models share nodes of the same type."""
    groups: dict[tuple[str, str], list[Lodger]] = defaultdict(list)
    for lodger in lodgers:
        groups[lodger.placement.pool_name, lodger.placement.cheapest.name].append(lodger)
    return tuple(_pool_cost(pool, name, members) for (pool, name), members in sorted(groups.items()))


def _pool_cost(pool: str, instance_type: str, lodgers: list[Lodger]) -> PoolCost:
    per_node = lodgers[0].placement.cheapest.accelerator_count
    wanted = [
        size
        for lodger in lodgers
        for _ in range(lodger.replicas)
        for size in _on_nodes(lodger.accelerators, per_node)
    ]
    spread = max(min(lodger.replicas, lodger.cost.zones) for lodger in lodgers)
    nodes = max(packed_nodes(wanted, per_node), spread)
    price = min((t.cost.node_price for t in lodgers if t.cost.node_price is not None), default=None)
    return PoolCost(
        pool=pool,
        instance_type=instance_type,
        nodes=nodes,
        accelerators=nodes * per_node,
        idle_accelerators=nodes * per_node - sum(wanted),
        floor=0.0 if not nodes else None if price is None else nodes * price,
    )


def _on_nodes(accelerators: int, per_node: int) -> list[int]:
    """A replica's accelerators on each of its nodes."""
    return [min(per_node, accelerators - taken) for taken in range(0, accelerators, per_node)]


def packed_nodes(accelerators: Iterable[int], per_node: int) -> int:
    """Nodes for replicas of the given sizes, first-fit decreasing."""
    with_room: dict[int, list[int]] = defaultdict(list)  # free accelerators -> heap of node numbers
    nodes = 0
    for wanted in sorted(accelerators, reverse=True):
        fitting = ((heap[0], room) for room, heap in with_room.items() if heap and room >= wanted)
        node, room = min(fitting, default=(nodes, per_node))
        if node == nodes:
            nodes += 1
        else:
            heappop(with_room[room])
        heappush(with_room[room - wanted], node)
    return nodes
