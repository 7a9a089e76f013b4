"""Checks of an environment by itself and against the names of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from modelyard.findings import Finding
from modelyard.hardware import accelerator_named, accelerators, instance_types
from modelyard.planning.admission import priced_by, unpriced
from modelyard.planning.placement import launchable
from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue
from modelyard.spec.pool import Pool

# EC2 begins to take the nodes of a Capacity Block back half an hour before its end, Karpenter drains them ten minutes
# earlier (Karpenter, capacity blocks; EC2 user guide).
_DRAIN_BEFORE_END = timedelta(minutes=40)


def environment_findings(environment: Environment, catalogue: Catalogue) -> Iterator[Finding]:
    """Pools that cannot work, and names that nothing defines."""
    subject = f"environment {environment.name}"
    if environment.cluster.general_nodes.ami.endswith("@latest"):
        yield _unpinned(
            "general nodes",
            environment.cluster.general_nodes.ami,
            subject,
            ("cluster", "generalNodes", "ami"),
        )
    if environment.cache.file_system == "lustre" and len(environment.availability_zones) > 1:
        yield Finding(
            "CACHE001",
            f"the Lustre file system lives in {environment.availability_zones[0]} alone",
            "use efs, or acknowledge it",
            subject=subject,
            field=("cache", "fileSystem"),
        )
    for name, pool in environment.pools.items():
        yield from _pool_findings(name, pool, environment, subject)
    yield from _price_findings(environment, subject)
    yield from _gateway_findings(environment, subject)
    for name, team in environment.teams.items():
        for field, kinds in (("accelerators", team.accelerators or {}), ("notebooks", team.notebooks)):
            for kind in kinds:
                if kind not in accelerators():
                    yield Finding(
                        "HW001",
                        f"team {name}: unknown accelerator '{kind}'",
                        f"use one of {', '.join(accelerators())}",
                        subject=subject,
                        field=("teams", name, field, kind),
                    )
    for name, override in environment.overrides.items():
        if name not in catalogue.models:
            yield Finding(
                "ENV002",
                f"override for unknown model '{name}'",
                f"known models are {', '.join(catalogue.models) or 'none'}",
                subject=subject,
                field=("overrides", name),
            )
        elif override.pool and override.pool not in environment.pools:
            yield Finding(
                "ENV002",
                f"override of {name} names unknown pool '{override.pool}'",
                f"known pools are {', '.join(environment.pools) or 'none'}",
                subject=subject,
                field=("overrides", name, "pool"),
            )


def _pool_findings(name: str, pool: Pool, environment: Environment, subject: str) -> Iterator[Finding]:
    field = _field_of(name)
    if accelerator_named(pool.accelerator) is None:
        yield Finding(
            "HW001",
            f"pool {name}: unknown accelerator '{pool.accelerator}'",
            f"use one of {', '.join(accelerators())}, or none for CPUs",
            subject=subject,
            field=(*field, "accelerator"),
        )
        return
    for type_name in pool.instance_types:
        instance = instance_types().get(type_name)
        wrong = (
            f"unknown instance type '{type_name}'"
            if instance is None
            else f"{type_name} has {instance.accelerator.name}, not {pool.accelerator}"
            if instance.accelerator.name != pool.accelerator
            else f"{type_name}: {instance.unsupported}"
            if instance.unsupported
            else None
        )
        if wrong:
            yield Finding(
                "CAP003",
                f"pool {name}: {wrong}",
                "remove it; `modelyard catalog instances` lists what fits",
                subject=subject,
                field=(*field, "instanceTypes"),
            )
    usable = launchable(pool, environment.region)
    if not usable:
        yield Finding(
            "CAP003",
            f"pool {name}: none of its instance types is offered in {environment.region}",
            "choose another region or accelerator",
            subject=subject,
            field=field,
        )
        return
    if (
        wasted := _never_launched(pool.limit, [instance.accelerator_count for instance in usable])
    ) == pool.limit:
        yield Finding(
            "CAP003",
            f"pool {name}: its limit of {pool.limit} allows no node, the smallest is {usable[0].name} with "
            f"{usable[0].accelerator_count} {pool.accelerator}",
            f"raise the limit to {usable[0].accelerator_count}, or choose another accelerator",
            subject=subject,
            field=(*field, "limit"),
        )
    elif wasted:
        yield Finding(
            "CAP008",
            f"pool {name}: {wasted} of its limit of {pool.limit} {pool.accelerator} can never be launched, nodes have "
            + " or ".join(str(count) for count in sorted({i.accelerator_count for i in usable})),
            f"use {pool.limit - wasted} or a multiple of the node",
            subject=subject,
            field=(*field, "limit"),
        )
    if len(usable) * len(environment.pool_zones(pool)) * len(pool.capacity) == 1:
        yield Finding(
            "CAP001",
            f"pool {name} depends on {usable[0].name} in one zone and one capacity type",
            "allow more types, zones or capacity types",
            subject=subject,
            field=field,
        )
    priced = priced_by(pool, environment)
    priceless = [i.name for i in usable if unpriced(i, environment.region) and i.name not in priced]
    if priceless and "reserved" not in pool.capacity:
        yield Finding(
            "CAP006",
            f"pool {name}: {', '.join(priceless)} has no public price, so Karpenter launches it from reservations alone",
            "set capacity to reserved and name reservations"
            + ("" if environment.cluster.auto_mode else ", or state what you pay in prices"),
            subject=subject,
            field=(*field, "capacity"),
        )
    if pool.ami.endswith("@latest"):
        yield _unpinned(f"pool {name}", pool.ami, subject, (*field, "ami"))
    yield from _window_findings(name, pool, subject)
    if pool.nodes and (most := pool.nodes * max(i.accelerator_count for i in usable)) > pool.limit:
        yield Finding(
            "CAP011",
            f"pool {name}: {pool.nodes} static nodes can hold {most} {pool.accelerator}, its limit is {pool.limit}",
            f"raise the limit to {most}, or name smaller instanceTypes",
            subject=subject,
            field=(*field, "nodes"),
        )


def _gateway_findings(environment: Environment, subject: str) -> Iterator[Finding]:
    if not environment.cluster.auto_mode:
        return
    for name in ("internal", "public"):
        gateway = environment.gateways.of(name)
        if gateway and gateway.class_name != "istio" and set(gateway.cidrs) - {"0.0.0.0/0"}:
            yield Finding(
                "SEC004",
                f"EKS Auto Mode does not limit load balancers of GatewayClass {gateway.class_name} to cidrs: it reads them "
                "from the Service alone, which only Istio's gateways can be told",
                f"leave gateways.{name}.className out, which is istio, or compute: karpenter",
                subject=subject,
                field=("gateways", name, "cidrs"),
            )


def _window_findings(name: str, pool: Pool, subject: str) -> Iterator[Finding]:
    """A pool that lives on reservations alone, all of which end."""
    ends = [reservation.ends for reservation in pool.reservations]
    if set(pool.capacity) != {"reserved"} or not all(ends):
        return
    last = max(end for end in ends if end)
    yield Finding(
        "CAP010",
        f"pool {name} has no capacity after {last:%Y-%m-%d %H:%M} UTC, when the last of its reservations ends; "
        f"Karpenter drains a Capacity Block's nodes from {last - _DRAIN_BEFORE_END:%H:%M} on",
        "add another capacity type or a reservation that begins before, or move its models by then",
        subject=subject,
        field=(*_field_of(name), "reservations"),
    )


def _field_of(pool: str) -> tuple[str, ...]:
    """Where the pool stands in the environment file."""
    return ("pools", pool)


def _price_findings(environment: Environment, subject: str) -> Iterator[Finding]:
    """A type has one price on demand, whichever pool launches it."""
    stated: dict[str, tuple[str, float]] = {}
    for name, pool in environment.pools.items():
        for instance_type in priced_by(pool, environment):
            price = pool.prices[instance_type]["on-demand"]
            first, known = stated.setdefault(instance_type, (name, price))
            if known != price:
                yield Finding(
                    "CAP012",
                    f"pool {name}: {instance_type} costs {price:g} on demand here and {known:g} in pool {first}",
                    "state the same price; Karpenter knows one for a type",
                    subject=subject,
                    field=(*_field_of(name), "prices", instance_type),
                )


def _never_launched(limit: int, nodes: list[int]) -> int:
    """What is left of `limit` when the pool is full of whole nodes, whichever of the sizes fit."""
    smallest = min(nodes)
    return limit if limit < smallest else limit % math.gcd(*nodes)


def _unpinned(nodes: str, ami: str, subject: str, field: tuple[str, ...]) -> Finding:
    return Finding(
        "AMI001",
        f"{nodes}: the AMI follows {ami}",
        "pin a release such as al2023@v20260714",
        subject=subject,
        field=field,
    )
