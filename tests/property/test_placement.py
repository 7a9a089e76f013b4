"""Every model that a plan accepts has an instance type, a zone, a capacity type and a rollout; every refused
model has none."""

from __future__ import annotations

import json
import random
from functools import cache
from importlib.resources import files
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import architectures
from modelyard.findings import Severity
from modelyard.hardware import accelerators, types_with
from modelyard.hardware.tables import yaml_table
from modelyard.memory.serving import Serving
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.admission import PodRequest, root_volume_gib
from modelyard.planning.placement import pod_request
from modelyard.spec import Environment, Model
from modelyard.spec.pool import Pool
from tests.property.cluster import Cluster, Deployment, NodeType
from tests.unit.given import a_model, a_plan, an_environment, served

GIB = 1 << 30
RESERVATION = "cr-0123456789abcdef0"
REGIONS = ["us-east-2", "us-east-1", "eu-central-1", "ap-northeast-1"]


@cache
def raw_types() -> dict[str, dict[str, Any]]:
    text = files("modelyard.hardware").joinpath("data", "instance_types.json").read_text("utf-8")
    types: dict[str, dict[str, Any]] = json.loads(text)["instanceTypes"]
    return types


def room(row: dict[str, Any], on_nvme: bool, volume_gib: int) -> tuple[int, float, float, float]:
    """Accelerators, CPU in milli, memory and disk in bytes for models' pods, from the tables' own words."""
    platform = yaml_table("platform.yaml")
    daemons, disk = platform["daemonSets"], platform["disk"]
    volume = row["localNvmeGb"] * 10**9 if on_nvme else volume_gib * GIB
    return (
        row["acceleratorCount"],
        row["allocatableCpuMilli"] - sum(d["cpuMilli"] for d in daemons),
        (row["allocatableMemoryMib"] - sum(d["memoryMib"] for d in daemons)) * (1 << 20),
        volume * disk["usableShare"] - (disk["systemGib"] + disk["imageGib"]) * GIB,
    )


def names(pool: Pool) -> list[str]:
    """The types of a pool: those it names, or all with its accelerator."""
    rows = raw_types().items()
    every = [n for n, row in rows if row["accelerator"] == pool.accelerator and not row.get("unsupported")]
    return list(pool.instance_types) or every


def offerings(pool: Pool, environment: Environment, request: PodRequest) -> set[tuple[str, str, str]]:
    """Brute force over the catalogue: (type, zone, capacity type) that a pod of the request can run on."""
    types = raw_types()
    rows = {n: row for n, row in types.items() if row["accelerator"] == pool.accelerator}
    named = names(pool)
    on_nvme = all(types[n]["localNvmeGb"] for n in named)
    found: set[tuple[str, str, str]] = set()
    for name in named:
        row = types[name]
        if name not in rows or row.get("unsupported") or environment.region not in row["offeredRegions"]:
            continue
        if row["acceleratorCount"] > pool.limit or row["allocatableCpuMilli"] is None:
            continue
        count = request.accelerators
        if pool.accelerator in ("inf2", "trn1", "trn2") and count not in (1, row["acceleratorCount"]):
            continue
        asks = (count, request.cpu_milli, request.memory.in_bytes, request.ephemeral.in_bytes)
        has = room(row, on_nvme, root_volume_gib(pool))
        if any(a > h for a, h in zip(asks, has, strict=True)) or request.efa_interfaces:
            continue
        for capacity in pool.capacity:
            priced = row["priceSource"].get(environment.region) != "none-published"
            sold = capacity in row["usageClasses"] or capacity == "reserved"
            if sold and (priced or capacity != "on-demand"):
                found |= {(name, zone, capacity) for zone in environment.pool_zones(pool)}
    return found


# Strategies are made once: making them takes longer than drawing from them.
@cache
def some_of(*values: str) -> st.SearchStrategy[list[str]]:
    """None, or some of the values."""
    return st.just([]) | st.lists(st.sampled_from(values), unique=True)


@cache
def kinds_with_types() -> dict[str, tuple[str, ...]]:
    found = {kind: tuple(each.name for each in types_with(kind)) for kind in sorted(accelerators())}
    return {kind: types for kind, types in found.items() if types}


@st.composite
def environments(draw: st.DrawFn) -> Environment:
    """Pools of one to four accelerators with some of their types, any capacity, zone and limit."""
    region = draw(st.sampled_from(REGIONS))
    zones = [f"{region}{letter}" for letter in draw(st.sampled_from(["ab", "abc"]))]
    pools = {}
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(tuple(kinds_with_types())))
        capacity = draw(st.lists(st.sampled_from(["on-demand", "spot", "reserved"]), min_size=1, unique=True))
        pools[f"p{number}"] = {
            "accelerator": kind,
            "limit": draw(st.integers(1, 40)),
            "instanceTypes": draw(some_of(*kinds_with_types()[kind])),
            "zones": draw(some_of(*zones)),
            "capacity": capacity,
            "reservations": [RESERVATION] if "reserved" in capacity else [],
            "rootVolumeGib": draw(st.sampled_from([100, 200])),
        }
    return an_environment(
        region=region, availabilityZones=zones, pools=pools, secrets={"hf-token": "lab/hf-token"}
    )


replicas = st.integers(0, 3).flatmap(
    lambda low: st.integers(max(1, low), 4).map(lambda high: {"min": low, "max": high})
)


ARCHITECTURES = st.sampled_from(sorted(architectures().repositories()))
COUNTS = st.sampled_from([None, 1, 2, 4, 8, 16])
ROLLOUTS = st.sampled_from(["auto", "auto", "surge", "in-place"])
AVAILABILITY = st.sampled_from([None, "single"])


@st.composite
def asked(draw: st.DrawFn) -> tuple[Environment, list[Model]]:
    """An environment, and one to four models that ask for its accelerators."""
    environment = draw(environments())
    kinds = st.sampled_from(["auto", *sorted({pool.accelerator for pool in environment.pools.values()})])
    return environment, [
        a_model(
            name=f"m{number}",
            model={"uri": "hf://house/weights", "architecture": draw(ARCHITECTURES)},
            accelerator={"type": draw(kinds), "count": draw(COUNTS)},
            replicas=draw(replicas),
            rollout={"strategy": draw(ROLLOUTS)},
            availability=draw(AVAILABILITY),
            engine={"maxModelLen": 1024},
        )
        for number in range(draw(st.integers(1, 4)))
    ]


many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@many
@given(asked())
def test_an_accepted_model_has_a_type_a_zone_and_a_capacity_type(
    case: tuple[Environment, list[Model]],
) -> None:
    environment, wanted = case
    plan = a_plan(*wanted, environment=environment)

    for model in plan.models:
        found = offerings(model.placement.pool, environment, model.pod)
        assert {t.name for t in model.placement.instance_types} <= {name for name, _, _ in found}
        assert model.pod.efa_interfaces == 0


@many
@given(asked())
def test_a_model_that_fits_is_refused_a_place_only_where_no_type_of_any_pool_admits_it(
    case: tuple[Environment, list[Model]],
) -> None:
    environment, wanted = case
    plan = a_plan(*wanted, environment=environment)

    planned = {model.name for model in plan.models}
    for model in wanted:
        if model.accelerator.type == "auto":
            continue
        serving = served(model)
        if not isinstance(serving, Serving):
            assert model.name not in planned
            continue
        request = pod_request(serving)
        pools = [p for p in environment.pools.values() if p.accelerator == model.accelerator.type]
        if serving.nodes > 1:  # no pool here has a fabric
            assert {f.code for f in plan.findings if f.subject == model.name} & {"NET001", "CAP003"}
            continue
        admitted = any(offerings(pool, environment, request) for pool in pools)
        refused = [f for f in plan.findings if f.subject == model.name and f.code == "CAP003"]
        assert admitted == (not refused)
        assert all("nearest miss" in finding.message for finding in refused)


@many
@given(case=asked(), spare=st.integers(0, 12), seed=st.integers(0, 1_000_000))
def test_an_accepted_plan_rolls_out_from_every_number_of_replicas(
    case: tuple[Environment, list[Model]], spare: int, seed: int
) -> None:
    """With limits as low as the plan says they may be: it is told what they must be, then a little more."""
    environment, wanted = case
    unlimited = with_limits(environment, {})
    refused = {
        f.subject for f in a_plan(*wanted, environment=unlimited).findings if f.level is Severity.ERROR
    }
    accepted = [model for model in wanted if model.name not in refused]
    assume(accepted)
    plan = a_plan(*accepted, environment=unlimited)
    assume(plan.models)
    plan = a_plan(*accepted, environment=with_limits(environment, needed_limits(plan, spare)))
    assume(all(finding.level is not Severity.ERROR for finding in plan.findings))

    choices = random.Random(seed)
    for name, pool in plan.environment.pools.items():
        here = [model for model in plan.models if model.placement.pool_name == name]
        for shift in range(max((m.model.replicas.max - m.model.replicas.min + 1 for m in here), default=0)):
            cluster = Cluster(pool.limit, [deployment(m, shift) for m in here], choices)
            assert cluster.settle()
            for running in cluster.deployments:
                running.steps = [
                    running.replicas,
                    choices.choice([running.replicas, most(running.name, here)]),
                ]
            assert cluster.roll_out()


def with_limits(environment: Environment, limits: dict[str, int]) -> Environment:
    pools = {
        name: pool.model_copy(update={"limit": limits.get(name, 10_000)})
        for name, pool in environment.pools.items()
    }
    return environment.model_copy(update={"pools": pools})


def needed_limits(plan: Plan, spare: int) -> dict[str, int]:
    """What CAP002 asks for when the limits are as low as one node of the largest model."""
    limits: dict[str, int] = {}
    for model in plan.models:
        node = model.placement.cheapest.accelerator_count
        limits[model.placement.pool_name] = max(node, limits.get(model.placement.pool_name, 1))
    told = a_plan(*(m.model for m in plan.models), environment=with_limits(plan.environment, limits))
    for finding in told.findings:
        if finding.code == "CAP002":
            limits[str(finding.field[1])] = int(finding.fix.split()[4].rstrip(","))
    return {name: limit + spare for name, limit in limits.items()}


def deployment(model: ModelPlan, shift: int) -> Deployment:
    pool, request = model.placement.pool, model.pod
    on_nvme = all(raw_types()[n]["localNvmeGb"] for n in names(pool))
    admitting = {t.name for t in model.placement.instance_types}
    types = []
    for name in sorted(admitting):
        has = room(raw_types()[name], on_nvme, root_volume_gib(pool))
        types.append(NodeType(name, tuple(int(amount) for amount in has)))
    low, high = model.model.replicas.min, model.model.replicas.max
    asks = (request.accelerators, request.cpu_milli, request.memory.in_bytes, request.ephemeral.in_bytes)
    rollout = model.rollout
    return Deployment(
        model.name, types, asks, rollout.max_surge, rollout.max_unavailable, [min(low + shift, high)]
    )


def most(name: str, plans: list[ModelPlan]) -> int:
    return next(model.model.replicas.max for model in plans if model.name == name)
