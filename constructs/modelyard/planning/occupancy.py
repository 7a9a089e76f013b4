"""Which models can run in a pool at the same time, and the limit that all of them need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from modelyard.planning.choice import Choice
from modelyard.planning.packing import PodKind, limit_for_all, limit_for_surge


@dataclass(frozen=True)
class Tenant:
    """A model in a pool at maximum replicas."""

    model: str
    kind: PodKind
    replicas: int

    def __str__(self) -> str:
        """`qwen 4`, or `llama 2 × 4 on nodes of 8` if a pod takes more than one accelerator or part of a
        node."""
        if self.kind.pods > 1:
            return f"{self.model} {self.replicas} × {self.kind.pods} nodes of {self.kind.node}"
        if self.kind.node == 1:
            return f"{self.model} {self.replicas}"
        nodes = f" on nodes of {self.kind.node}" if self.kind.node != self.kind.size else ""
        return f"{self.model} {self.replicas} × {self.kind.size}{nodes}"


@dataclass(frozen=True)
class Occupancy:
    """The models that can run in one pool at the same time. `limit`: accelerators that all of them need;
    `surge_limits`: accelerators needed with one more pod of a kind."""

    tenants: tuple[Tenant, ...]
    limit: int
    surge_limits: Mapping[PodKind, int]


def occupancy(tenants: Iterable[Tenant]) -> Occupancy:
    """The occupancy of one pool with these `tenants`."""
    those = tuple(sorted(tenants, key=lambda tenant: tenant.model))
    population: Counter[PodKind] = Counter()
    for tenant in those:
        population[tenant.kind] += tenant.replicas * tenant.kind.pods
    surges = {kind: limit_for_surge(kind, population) for kind in population}
    return Occupancy(those, limit_for_all(population), MappingProxyType(surges))


def occupancies(choices: Mapping[str, Choice], replicas: Mapping[str, int]) -> dict[str, Occupancy]:
    """The occupancy of every used pool; `replicas`: each model's maximum."""
    tenants: dict[str, list[Tenant]] = {}
    for name, choice in choices.items():
        tenant = Tenant(name, choice.kind, replicas[name])
        tenants.setdefault(choice.placement.pool_name, []).append(tenant)
    return {pool: occupancy(those) for pool, those in tenants.items()}
