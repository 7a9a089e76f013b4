"""The vCPU quotas that an environment needs in its account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modelyard.hardware import InstanceType, platform_facts
from modelyard.hardware.tables import yaml_table
from modelyard.planning.placement import Placement


@dataclass(frozen=True)
class QuotaNeed:
    """vCPU that the models can request at once, on the cheapest types, under one Service Quotas code.

    `reserved_vcpu`: the part for nodes in reservations. `available`: None if the environment file does not
    state the account's quota.
    """

    code: str
    name: str
    needed_vcpu: int
    available: int | None
    reserved_vcpu: int = 0

    @property
    def short(self) -> bool:
        return self.available is not None and self.available < self.needed_vcpu


def quota_needs(demands: Iterable[tuple[Placement, int]], available: dict[str, int]) -> tuple[QuotaNeed, ...]:
    """Sum (placement, maximum nodes) by quota; a pool with spot and on-demand counts against both."""
    needed: dict[tuple[str, str], int] = defaultdict(int)
    reserved: dict[tuple[str, str], int] = defaultdict(int)
    for placement, nodes in demands:
        vcpu = nodes * placement.cheapest.vcpu
        for quota in _quotas(placement, available):
            needed[quota] += vcpu
            if "on-demand" not in placement.pool.capacity and "reserved" in placement.pool.capacity:
                reserved[quota] += 0 if quota == _spot(placement.cheapest) else vcpu
    return tuple(
        QuotaNeed(code, name, vcpu, available.get(code), reserved[code, name])
        for (code, name), vcpu in sorted(needed.items())
    )


def _quotas(placement: Placement, available: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Code and name of every quota that nodes of `placement` can count against.

    An On-Demand Capacity Reservation counts as on-demand, used or not (EC2 User Guide, On-Demand Instance
    quotas). A Capacity Block has its own quota. Both have IDs cr-…, so reservations are taken for Capacity
    Blocks if the environment file states that quota.
    """
    capacity, cheapest = placement.pool.capacity, placement.cheapest
    block = yaml_table("capacity_blocks.yaml")["quotas"].get(cheapest.family)
    in_blocks = "reserved" in capacity and block is not None and block["code"] in available
    if in_blocks:
        yield block["code"], block["name"]
    if "on-demand" in capacity or ("reserved" in capacity and not in_blocks):
        quota = platform_facts().quota(cheapest.family)
        yield quota.on_demand, f"Running On-Demand {quota.name} instances"
    if "spot" in capacity:
        yield _spot(cheapest)


def _spot(instance: InstanceType) -> tuple[str, str]:
    quota = platform_facts().quota(instance.family)
    return quota.spot, f"All {quota.name} Spot Instance Requests"
