"""Checks of an environment by itself and against the names of the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.hardware import accelerator_named, accelerators, instance_types
from modelyard.planning.placement import launchable
from modelyard.spec.environment import Environment, Pool
from modelyard.spec.loading import Catalogue


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
    for name, pool in environment.pools.items():
        yield from _pool_findings(name, pool, environment, subject)
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
    field = ("pools", name)
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
    unpriced = [i.name for i in usable if i.price(environment.region).source == "none-published"]
    if unpriced and "reserved" not in pool.capacity:
        yield Finding(
            "CAP006",
            f"pool {name}: {', '.join(unpriced)} has no public price, so Karpenter launches it from reservations alone",
            "set capacity to reserved and name reservations",
            subject=subject,
            field=(*field, "capacity"),
        )
    if pool.ami.endswith("@latest"):
        yield _unpinned(f"pool {name}", pool.ami, subject, (*field, "ami"))


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
