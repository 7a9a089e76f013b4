"""Checks across all models: whether they fit, and the limits of pools and the account."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.hardware import InstanceType
from modelyard.hardware.zones import offering_zones, region_zones, surely_offered
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.placement import single_offering
from modelyard.planning.records import ModelPlan


def refusals(proposal: Proposal) -> Iterator[Finding]:
    """Models that cannot be placed, or cannot run where they are placed."""
    for workload in proposal.workloads:
        if workload.role != "prefill":
            yield from workload.refusals
    yield from proposal.refusals


def pool_limits(proposal: Proposal) -> Iterator[Finding]:
    """Pools whose models can request more whole nodes than the limit allows."""
    for name, those in proposal.occupied.items():
        pool = proposal.environment.pools[name]
        if those.limit > pool.limit:
            yield Finding(
                "CAP002",
                f"pool {name} allows {pool.limit} {pool.accelerator}, models can ask for {those.limit} in whole "
                f"nodes: {', '.join(map(str, those.tenants))}",
                f"raise its limit to {those.limit}, or lower replicas",
                subject=proposal.subject,
                field=("pools", name, "limit"),
            )


def single_offerings(proposal: Proposal) -> Iterator[Finding]:
    """Models that depend on a single offering, although their pool has more."""
    environment = proposal.environment
    for planned in proposal.plans:
        placement = planned.placement
        types, zones = placement.instance_types, environment.pool_zones(placement.pool)
        if single_offering(placement.pool, environment):
            continue
        if len(types) * len(zones) * len(placement.pool.capacity) == 1:
            yield Finding(
                "CAP001",
                f"of pool {placement.pool_name} only {types[0].name} admits the model, in one zone and one capacity type",
                "allow more types, zones or capacity types",
                subject=planned.name,
                field=("accelerator",),
            )


def zones_that_offer(proposal: Proposal) -> Iterator[Finding]:
    """Models whose instance types the pool's zones may not offer."""
    environment = proposal.environment
    for planned in proposal.plans:
        types, zones = planned.placement.instance_types, environment.pool_zones(planned.placement.pool)
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


def quotas(proposal: Proposal) -> Iterator[Finding]:
    """Account quotas that are smaller than what the models can request."""
    for need in proposal.quotas:
        if need.short:
            yield Finding(
                "QUOTA001",
                f"{need.name} ({need.code}): {need.needed_vcpu} vCPU needed, quota {need.available}",
                f"request {need.needed_vcpu} in Service Quotas, {proposal.environment.region}",
                subject=proposal.subject,
                field=("quotas", need.code),
            )
