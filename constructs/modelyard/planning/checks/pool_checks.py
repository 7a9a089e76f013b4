"""Checks of each pool on its own: accelerator, launchable types, limits, prices and reservations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from modelyard.findings import Finding
from modelyard.hardware import InstanceType, accelerator_named, accelerators, instance_types
from modelyard.planning.admission import priced_by, unpriced
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.placement import launchable, single_offering
from modelyard.reading import suggestion
from modelyard.spec.environment import Environment
from modelyard.spec.pool import Pool

# EC2 starts to terminate a Capacity Block's instances 30 minutes before its end; Karpenter drains them ten
# minutes earlier (Karpenter, capacity blocks; EC2 user guide).
_DRAIN_BEFORE_END = timedelta(minutes=40)


def unknown_accelerators(proposal: Proposal) -> Iterator[Finding]:
    for name, pool in proposal.environment.pools.items():
        if accelerator_named(pool.accelerator) is None:
            yield Finding(
                "HW001",
                f"pool {name}: unknown accelerator '{pool.accelerator}'",
                suggestion(pool.accelerator, accelerators())
                + f"use one of {', '.join(accelerators())}, or none for CPUs",
                subject=proposal.subject,
                field=(*_field_of(name), "accelerator"),
            )


def wrong_types(proposal: Proposal) -> Iterator[Finding]:
    """Instance types that are unknown, have another accelerator, or are unsupported."""
    for name, pool in _with_known_accelerator(proposal.environment):
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
                    subject=proposal.subject,
                    field=(*_field_of(name), "instanceTypes"),
                )


def offered(proposal: Proposal) -> Iterator[Finding]:
    """Pools with no instance type offered in the region."""
    region = proposal.environment.region
    for name, pool in _with_known_accelerator(proposal.environment):
        if not launchable(pool, region):
            yield Finding(
                "CAP003",
                f"pool {name}: none of its instance types is offered in {region}",
                "choose another region or accelerator",
                subject=proposal.subject,
                field=_field_of(name),
            )


def limits(proposal: Proposal) -> Iterator[Finding]:
    """Limits below one node, or not a multiple of whole nodes."""
    for name, pool, usable in _usable(proposal.environment):
        wasted = _never_launched(pool.limit, [instance.accelerator_count for instance in usable])
        field = (*_field_of(name), "limit")
        if wasted == pool.limit:
            yield Finding(
                "CAP003",
                f"pool {name}: its limit of {pool.limit} allows no node, the smallest is {usable[0].name} with "
                f"{usable[0].accelerator_count} {pool.accelerator}",
                f"raise the limit to {usable[0].accelerator_count}, or choose another accelerator",
                subject=proposal.subject,
                field=field,
            )
        elif wasted:
            yield Finding(
                "CAP008",
                f"pool {name}: {wasted} of its limit of {pool.limit} {pool.accelerator} can never be launched, nodes have "
                + " or ".join(str(count) for count in sorted({i.accelerator_count for i in usable})),
                f"use {pool.limit - wasted} or a multiple of the node",
                subject=proposal.subject,
                field=field,
            )


def static_nodes(proposal: Proposal) -> Iterator[Finding]:
    """Static nodes beyond the pool's limit."""
    for name, pool, usable in _usable(proposal.environment):
        if pool.nodes and (most := pool.nodes * max(i.accelerator_count for i in usable)) > pool.limit:
            yield Finding(
                "CAP011",
                f"pool {name}: {pool.nodes} static nodes can hold {most} {pool.accelerator}, its limit is {pool.limit}",
                f"raise the limit to {most}, or name smaller instanceTypes",
                subject=proposal.subject,
                field=(*_field_of(name), "nodes"),
            )


def single_offerings(proposal: Proposal) -> Iterator[Finding]:
    """Pools with one instance type in one zone and one capacity type."""
    for name, pool, usable in _usable(proposal.environment):
        if single_offering(pool, proposal.environment):
            yield Finding(
                "CAP001",
                f"pool {name} depends on {usable[0].name} in one zone and one capacity type",
                "allow more types, zones or capacity types",
                subject=proposal.subject,
                field=_field_of(name),
            )


def priceless_types(proposal: Proposal) -> Iterator[Finding]:
    """Types that Karpenter does not launch because they have no price."""
    environment = proposal.environment
    for name, pool, usable in _usable(environment):
        priced = priced_by(pool, environment, proposal.prices)
        priceless = [i.name for i in usable if unpriced(i, proposal.prices) and i.name not in priced]
        if priceless and "reserved" not in pool.capacity:
            yield Finding(
                "CAP006",
                f"pool {name}: {', '.join(priceless)} has no public price, so Karpenter launches it from reservations alone",
                "set capacity to reserved and name reservations"
                + ("" if environment.cluster.auto_mode else ", or state what you pay in prices"),
                subject=proposal.subject,
                field=(*_field_of(name), "capacity"),
            )


def contradicting_prices(proposal: Proposal) -> Iterator[Finding]:
    """Different on-demand prices stated for one instance type."""
    environment = proposal.environment
    stated: dict[str, tuple[str, float]] = {}
    for name, pool in environment.pools.items():
        for instance_type in priced_by(pool, environment, proposal.prices):
            price = pool.prices[instance_type]["on-demand"]
            first, known = stated.setdefault(instance_type, (name, price))
            if known != price:
                yield Finding(
                    "CAP012",
                    f"pool {name}: {instance_type} costs {price:g} on demand here and {known:g} in pool {first}",
                    "state the same price; Karpenter knows one for a type",
                    subject=proposal.subject,
                    field=(*_field_of(name), "prices", instance_type),
                )


def ending_reservations(proposal: Proposal) -> Iterator[Finding]:
    """Reserved-only pools whose reservations all end."""
    for name, pool, _ in _usable(proposal.environment):
        ends = [reservation.ends for reservation in pool.reservations]
        if set(pool.capacity) != {"reserved"} or not all(ends):
            continue
        last = max(end for end in ends if end)
        yield Finding(
            "CAP010",
            f"pool {name} has no capacity after {last:%Y-%m-%d %H:%M} UTC, when the last of its reservations ends; "
            f"Karpenter drains a Capacity Block's nodes from {last - _DRAIN_BEFORE_END:%H:%M} on",
            "add another capacity type or a reservation that begins before, or move its models by then",
            subject=proposal.subject,
            field=(*_field_of(name), "reservations"),
        )


def _with_known_accelerator(environment: Environment) -> Iterator[tuple[str, Pool]]:
    for name, pool in environment.pools.items():
        if accelerator_named(pool.accelerator) is not None:
            yield name, pool


def _usable(environment: Environment) -> Iterator[tuple[str, Pool, list[InstanceType]]]:
    """Pools that can launch nodes, with their launchable instance types."""
    for name, pool in _with_known_accelerator(environment):
        if usable := launchable(pool, environment.region):
            yield name, pool, usable


def _field_of(pool: str) -> tuple[str, ...]:
    """The pool's path in the environment file."""
    return ("pools", pool)


def _never_launched(limit: int, nodes: list[int]) -> int:
    """The part of `limit` that whole nodes of these sizes can never fill."""
    smallest = min(nodes)
    return limit if limit < smallest else limit % math.gcd(*nodes)
