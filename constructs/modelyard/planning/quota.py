"""The vCPU quotas that an environment needs of its account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from modelyard.hardware import platform_facts
from modelyard.planning.placement import Placement


@dataclass(frozen=True)
class QuotaNeed:
    """vCPU that the models can ask for at once, on the cheapest types, under one Service Quotas code. `available` is
    None when the environment file does not state the account's quota."""

    code: str
    name: str
    needed_vcpu: int
    available: int | None

    @property
    def short(self) -> bool:
        return self.available is not None and self.available < self.needed_vcpu


def quota_needs(demands: Iterable[tuple[Placement, int]], available: dict[str, int]) -> tuple[QuotaNeed, ...]:
    """Sum (placement, nodes at most) by quota; a pool that allows spot and on-demand counts against both."""
    facts = platform_facts()
    needed: dict[tuple[str, str], int] = defaultdict(int)
    for placement, nodes in demands:
        vcpu = nodes * placement.cheapest.vcpu
        quota = facts.quota(placement.cheapest.family)
        if {"on-demand", "reserved"} & set(placement.pool.capacity):
            needed[quota.on_demand, f"Running On-Demand {quota.name} instances"] += vcpu
        if "spot" in placement.pool.capacity:
            needed[quota.spot, f"All {quota.name} Spot Instance Requests"] += vcpu
    return tuple(
        QuotaNeed(code, name, vcpu, available.get(code)) for (code, name), vcpu in sorted(needed.items())
    )
