"""Checks over all models together: what pools and the account hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from modelyard.findings import Finding
from modelyard.hardware import InstanceType
from modelyard.hardware.zones import offering_zones, region_zones, surely_offered
from modelyard.planning.choice import Choice
from modelyard.planning.packing import PodKind, limit_for_all, limit_for_surge
from modelyard.planning.quota import QuotaNeed
from modelyard.planning.records import ModelPlan
from modelyard.spec.environment import Environment


@dataclass(frozen=True)
class Tenant:
    """A model in a pool, with all replicas that it may have."""

    model: str
    kind: PodKind
    replicas: int

    def __str__(self) -> str:
        """`qwen 4`, or `llama 2 × 4 on nodes of 8` where a pod takes part of a node or more than one accelerator."""
        if self.kind.pods > 1:
            return f"{self.model} {self.replicas} × {self.kind.pods} nodes of {self.kind.node}"
        if self.kind.node == 1:
            return f"{self.model} {self.replicas}"
        nodes = f" on nodes of {self.kind.node}" if self.kind.node != self.kind.size else ""
        return f"{self.model} {self.replicas} × {self.kind.size}{nodes}"


@dataclass(frozen=True)
class Occupancy:
    """Who may run in one pool at the same time. `limit` is what places for all of them take, in accelerators;
    `surge_limits` what one more pod of a kind takes."""

    tenants: tuple[Tenant, ...]
    limit: int
    surge_limits: Mapping[PodKind, int]


def occupancy(tenants: Iterable[Tenant]) -> Occupancy:
    """The places that `tenants` of one pool need together."""
    those = tuple(sorted(tenants, key=lambda tenant: tenant.model))
    population: Counter[PodKind] = Counter()
    for tenant in those:
        population[tenant.kind] += tenant.replicas * tenant.kind.pods
    surges = {kind: limit_for_surge(kind, population) for kind in population}
    return Occupancy(those, limit_for_all(population), MappingProxyType(surges))


def occupancies(choices: Mapping[str, Choice], replicas: Mapping[str, int]) -> dict[str, Occupancy]:
    """Every used pool's occupancy; `replicas` is the most that each model may have."""
    tenants: dict[str, list[Tenant]] = {}
    for name, choice in choices.items():
        tenant = Tenant(name, choice.kind, replicas[name])
        tenants.setdefault(choice.placement.pool_name, []).append(tenant)
    return {pool: occupancy(those) for pool, those in tenants.items()}


def limit_findings(occupied: Mapping[str, Occupancy], environment: Environment) -> Iterator[Finding]:
    """Pools whose models can ask for more whole nodes than the limit allows."""
    for name, those in occupied.items():
        pool = environment.pools[name]
        if those.limit > pool.limit:
            yield Finding(
                "CAP002",
                f"pool {name} allows {pool.limit} {pool.accelerator}, models can ask for {those.limit} in whole "
                f"nodes: {', '.join(map(str, those.tenants))}",
                f"raise its limit to {those.limit}, or lower replicas",
                subject=f"environment {environment.name}",
                field=("pools", name, "limit"),
            )


def offering_findings(
    plans: Iterable[ModelPlan], environment: Environment, reported: Iterable[Finding]
) -> Iterator[Finding]:
    """Models that depend on one offering, or on one that their zones may not have; `reported` is known of pools."""
    pools = {finding.field[1] for finding in reported if finding.code == "CAP001"}
    for planned in plans:
        placement = planned.placement
        zones = environment.pool_zones(placement.pool)
        types = placement.instance_types
        if len(types) * len(zones) * len(placement.pool.capacity) == 1 and placement.pool_name not in pools:
            yield Finding(
                "CAP001",
                f"of pool {placement.pool_name} only {types[0].name} admits the model, in one zone and one capacity type",
                "allow more types, zones or capacity types",
                subject=planned.name,
                field=("accelerator",),
            )
        if not any(surely_offered(instance, environment.region, len(zones)) for instance in types):
            yield _perhaps_not_offered(planned, types, zones, environment.region)


def _perhaps_not_offered(
    planned: ModelPlan, types: tuple[InstanceType, ...], zones: tuple[str, ...], region: str
) -> Finding:
    offering = sorted({zone for instance in types for zone in offering_zones(instance, region)})
    return Finding(
        "CAP009",
        f"{', '.join(instance.name for instance in types)} {'is' if len(types) == 1 else 'are'} offered in "
        f"{', '.join(offering)} of {len(region_zones(region))} zones, which {' and '.join(zones)} need not be among",
        f"compare with `aws ec2 describe-availability-zones --region {region}`: names of zones differ by account",
        subject=planned.name,
        field=("accelerator",),
    )


def quota_finding(need: QuotaNeed, environment: Environment) -> Finding:
    return Finding(
        "QUOTA001",
        f"{need.name} ({need.code}): {need.needed_vcpu} vCPU needed, quota {need.available}",
        f"request {need.needed_vcpu} in Service Quotas, {environment.region}",
        subject=f"environment {environment.name}",
        field=("quotas", need.code),
    )
