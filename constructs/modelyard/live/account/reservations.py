"""Capacity reservations and Capacity Blocks of the pools: active, right type, right zone, long enough."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import (
    AccountCheck,
    Case,
    Diagnosis,
    days_between,
    ok,
    one_by_one,
    problem,
)
from modelyard.planning.admission import candidates

_RESERVATIONS = Operation("ec2", "DescribeCapacityReservations")
_GONE = {"InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationId.Malformed"}


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    for pool, settings in case.environment.pools.items():
        found: dict[str, dict[str, Any]] = {}
        judge = partial(_reservation, ask, case, pool, found)
        yield from one_by_one([reservation.id for reservation in settings.reservations], judge)
        if found and len(found) == len(settings.reservations) and settings.capacity == ("reserved",):
            yield from _enough(case, pool, list(found.values()))


def _reservation(ask: Ask, case: Case, pool: str, found: dict[str, dict[str, Any]], name: str) -> Diagnosis:
    """One reservation; AWS' description of it goes into `found`."""
    environment = case.environment
    settings = environment.pools[pool]
    types = [instance.name for instance in candidates(settings.accelerator, settings.instance_types)]
    region = environment.region
    listing = (
        f"aws ec2 describe-capacity-reservations --region {region} "
        f"--filters Name=instance-type,Values={','.join(types)} Name=state,Values=active,scheduled"
    )
    mend = f"put the id of one that is active under pools.{pool}.reservations in {case.file}; these there are: {listing}"
    # One id per call: a single unknown id fails the whole call.
    try:
        answer = ask(_RESERVATIONS, CapacityReservationIds=[name])
    except Refusal as refused:
        if refused.code in _GONE:
            return problem(name, f"pool {pool}: the account has no such reservation", mend)
        raise
    if not answer["CapacityReservations"]:
        return problem(name, f"pool {pool}: the account has no such reservation", mend)
    (row,) = answer["CapacityReservations"]
    found[name] = row
    block = row.get("ReservationType") == "capacity-block"
    kind = "Capacity Block" if block else "reservation"
    instance, count = row["InstanceType"], row["TotalInstanceCount"]
    facts = f"pool {pool}: {kind} of {count} × {instance} in {row['AvailabilityZone']}"
    if row["State"] != "active":
        begins = f", begins {_date(row['StartDate'])}" if row["State"] == "scheduled" else ""
        return problem(name, f"{facts} is {row['State']}{begins}", mend)
    if instance not in types:
        return problem(name, f"{facts}, and the pool has {', '.join(types)}", mend)
    zones = environment.pool_zones(settings)
    if row["AvailabilityZone"] not in zones:
        return problem(
            name,
            f"{facts}, and the pool is in {', '.join(zones)}",
            f"in {case.file}: pools: {{{pool}: {{zones: [{', '.join([*settings.zones, row['AvailabilityZone']])}]}}}}",
        )
    facts += f", {row['AvailableInstanceCount']} of {count} free"
    if block:
        facts += _block_quota(case, instance)
    end: datetime | None = row.get("EndDate")
    if end is None:
        return ok(name, f"{facts}, without an end")
    left = days_between(case.now, end)
    facts += f", ends {_date(end)}, in {left} {'day' if left == 1 else 'days'}"
    (stated,) = (each.ends for each in settings.reservations if each.id == name)
    written = f"{{id: {name}, ends: {end:%Y-%m-%dT%H:%M:%SZ}}}"
    if stated and abs((stated - end).total_seconds()) >= 60:
        return problem(
            name,
            f"{facts}; {case.file} says {_date(stated)}",
            f"in {case.file}: pools: {{{pool}: {{reservations: [{written}]}}}}",
        )
    if stated is None:
        facts += f"; the plan knows it once it is written: {written}"
    if left >= yaml_table("account.yaml")["reservations"]["daysLeft"]:
        return ok(name, facts)
    after = (
        f"aws ec2 describe-capacity-block-offerings --instance-type {instance} --instance-count {count} "
        f"--capacity-duration-hours 168 --start-date-range {end:%Y-%m-%dT%H:%M:%SZ} --region {region}"
        if block
        else f"aws ec2 modify-capacity-reservation --capacity-reservation-id {name} --end-date-type unlimited --region {region}"
    )
    return problem(name, facts, after)


def _block_quota(case: Case, instance: str) -> str:
    """Ids do not distinguish blocks from other reservations, so the plan counts blocks if the file states
    their quota."""
    quota = yaml_table("capacity_blocks.yaml")["quotas"].get(instance.partition(".")[0])
    if quota is None or quota["code"] in case.environment.quotas:
        return ""
    return (
        f" (its quota is {quota['code']}: state it under quotas, or the plan counts the block as on demand)"
    )


def _enough(case: Case, pool: str, found: list[dict[str, Any]]) -> Iterator[Diagnosis]:
    """The pool launches only from reservations, so they must hold the nodes of its minimum replicas."""
    for cost in case.plan.pools:
        active = [
            row for row in found if row["State"] == "active" and row["InstanceType"] == cost.instance_type
        ]
        have = sum(row["TotalInstanceCount"] for row in active)
        if cost.pool == pool and active and have < cost.nodes:
            yield problem(
                pool,
                f"its models need {cost.nodes} × {cost.instance_type} at the least, its reservations hold {have}",
                f"name further reservations under pools.{pool}.reservations in {case.file}, or lower replicas",
            )


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


RESERVATIONS = AccountCheck("reservations", (_RESERVATIONS,), _judge)
