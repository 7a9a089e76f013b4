"""EC2 offerings for the pools: zones of instance types, and spot placement scores."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, one_by_one, problem
from modelyard.planning.placement import launchable

_OFFERINGS = Operation("ec2", "DescribeInstanceTypeOfferings")
_SCORES = Operation("ec2", "GetSpotPlacementScores")
_ZONES = Operation("ec2", "DescribeAvailabilityZones")
# EKS nodes of an environment run in zones such as us-east-2a; Local Zones such as us-west-2-lax-1a are listed
# too.
_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")


def _judge_offerings(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment
    wanted = {
        name: sorted(instance.name for instance in launchable(pool, environment.region))
        for name, pool in environment.pools.items()
    }
    types = sorted({instance for names in wanted.values() for instance in names})
    if not types:
        return
    answer = ask(
        _OFFERINGS, LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": types}]
    )
    offered: dict[str, set[str]] = {}
    for row in answer["InstanceTypeOfferings"]:
        if not _ZONE.fullmatch(row["Location"]):
            continue
        offered.setdefault(row["Location"], set()).add(row["InstanceType"])
    for name, names in wanted.items():
        for zone in environment.pool_zones(environment.pools[name]):
            yield _zone(case, name, names, zone, offered)


def _zone(case: Case, pool: str, types: list[str], zone: str, offered: dict[str, set[str]]) -> Diagnosis:
    """A pool in one zone. Karpenter picks any type that fits the pod, so each model needs at least one type
    offered there."""
    environment = case.environment
    there = offered.get(zone, set())
    subject = f"{pool} in {zone}"
    admitting = {
        model.name: [instance.name for instance in model.placement.instance_types]
        for model in case.plan.models
        if model.placement.pool_name == pool
    }
    stranded = {model: names for model, names in admitting.items() if not there & set(names)}
    if not stranded and there & set(types):
        absent = [name for name in types if name not in there]
        return ok(subject, "offers " + ", ".join(sorted(there & set(types))) + _without(absent))
    lacking = sorted({name for names in stranded.values() for name in names}) or types
    having = sorted(
        place
        for place, names in offered.items()
        if names & set(types) and all(names & set(wanted) for wanted in admitting.values())
    )
    inside = [place for place in environment.pool_zones(environment.pools[pool]) if place in having]
    others = [place for place in having if place not in inside]
    models = f", which {', '.join(stranded)} {'need' if len(stranded) > 1 else 'needs'}" if stranded else ""
    fix = [
        f"{', '.join(having)} {'offer' if len(having) > 1 else 'offers'} it"
        if having
        else f"no zone of {environment.region} offers it: choose other instance types or another region"
    ]
    if inside:
        fix.append(f"in {case.file}: pools: {{{pool}: {{zones: [{', '.join(inside)}]}}}}")
    elif others:
        fix.append(
            f"in {case.file}: pools: {{{pool}: {{zones: [{', '.join(others)}]}}}}, with these zones in availabilityZones"
        )
    return problem(subject, f"offers none of {', '.join(lacking)}{models}", "\n".join(fix))


def _without(absent: list[str]) -> str:
    return f", not {', '.join(absent)}" if absent else ""


def _judge_spot(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    pools = [name for name, pool in case.environment.pools.items() if "spot" in pool.capacity]
    yield from one_by_one(pools, lambda name: _spot(ask, case, name))


def _spot(ask: Ask, case: Case, name: str) -> Diagnosis:
    environment, pool = case.environment, case.environment.pools[name]
    types = [i for i in launchable(pool, environment.region) if "spot" in i.usage_classes]
    if not types:
        return ok(name, "none of its instance types is sold as spot")
    most = max(1, pool.limit // min(instance.accelerator_count for instance in types))
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in ask(_ZONES)["AvailabilityZones"]}
    answer = ask(
        _SCORES,
        InstanceTypes=[instance.name for instance in types],
        TargetCapacity=most,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=[environment.region],
    )
    scores = {
        names.get(row["AvailabilityZoneId"], row["AvailabilityZoneId"]): int(row["Score"])
        for row in answer["SpotPlacementScores"]
    }
    zones = environment.pool_zones(pool)
    mine = {zone: scores.get(zone, 0) for zone in zones}
    facts = f"chance of {most} instances by zone, of 10: " + ", ".join(f"{z} {s}" for z, s in mine.items())
    if max(mine.values()) >= yaml_table("account.yaml")["spot"]["leastScore"]:
        return ok(name, facts)
    few = "" if len(types) > 2 else "; AWS scores fewer than three types low"
    best = sorted(z for z, s in scores.items() if s > max(mine.values()))
    elsewhere = f"{', '.join(best)} score higher: name them under zones; or " if best else ""
    return problem(
        name,
        f"{facts}{few}",
        f"{elsewhere}add on-demand in {case.file}: pools: {{{name}: {{capacity: [spot, on-demand]}}}}",
    )


OFFERINGS = AccountCheck("offerings", (_OFFERINGS,), _judge_offerings)
SPOT = AccountCheck("spot", (_SCORES, _ZONES), _judge_spot)
