"""Models over every pool and size, and whether the real Karpenter does with each what its plan says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from modelyard.checkpoints import architectures
from modelyard.hardware import instance_types
from modelyard.planning import ModelPlan, Plan
from modelyard.planning import plan as make_plan
from modelyard.planning.admission import room_on
from modelyard.project import load_project
from modelyard.spec import Catalogue, Environment, Model
from tests.cluster.api import Api, Object
from tests.cluster.ec2 import Ec2, offered
from tests.cluster.nodes import volume_of
from tests.cluster.programs import ROOT
from tests.contract.conftest import folders_of

ENVIRONMENTS = ("dev", "staging", "prod")

_POPULAR = ROOT / "tests" / "fixtures" / "popular.txt"
_CPU = {"uri": "hf://Qwen/Qwen3-8B-GGUF", "file": "Qwen3-8B-Q4_K_M.gguf", "architecture": "Qwen/Qwen3-8B"}

POOLS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "g4dn": {"accelerator": "t4"},
        "g5": {"accelerator": "a10g"},
        "g6": {"accelerator": "l4"},
        "g7e": {"accelerator": "rtx-pro-6000"},
        "p4d": {"accelerator": "a100"},
        "p5en": {"accelerator": "h200", "instanceTypes": ["p5en.48xlarge"]},
        "p6": {"accelerator": "b200"},
        "cpu": {"accelerator": "none"},
    }
)
"""Beside those of the environment: one for each other accelerator that the region sells."""

FIRST_SPOT = ("g4dn", "g5", "g6", "g7e")
"""Of staging; Karpenter then asks for spot alone, and for on-demand where there is none."""
ZONES = ("us-east-2a", "us-east-2b")
"""Of the added pools of prod."""

ASKED = (
    *(f"{kind}:{count}" for kind in ("t4", "a10g", "l4", "l40s") for count in (1, 2, 4, 8)),
    *(f"rtx-pro-6000:{count}" for count in (1, 2, 4, 8)),
    *(f"h100:{count}" for count in (1, 2, 4, 8)),
    *("a100:2", "a100:4", "a100:8", "h200:4", "h200:8", "b200:8"),
    *("trn2:1", "none:4", "none:16"),
)
"""A model each, of those that people serve in their order, which the plan accepts in each environment."""

OFFLOADED = (("l40s:1", 16), ("l40s:1", 64), ("l40s:1", 192), ("l4:1", 40), ("a10g:1", 100), ("l40s:4", 400))
"""With a cache of so many GiB in the host's memory: the smaller types of the accelerator do not fit."""


def environment(name: str) -> Environment:
    """One of this repository with pools for everything, wide enough for all models at once."""
    data = load_project(name, *folders_of(name)).environment
    assert data is not None
    lines = data.model_dump(mode="json", by_alias=True)
    lines["pools"] |= {pool: dict(added) for pool, added in POOLS.items()}
    for pool, settings in lines["pools"].items():
        settings["limit"] = 4096
        if name == "staging" and pool in FIRST_SPOT:
            settings["capacity"] = ["spot", "on-demand"]
        if name == "prod" and pool in POOLS:
            settings["zones"] = list(ZONES)
    # What is paid, allowed and acknowledged for other models than these.
    lines |= {"quotas": {}, "cost": None}
    lines["acknowledge"] = [{"code": code, "reason": "Models of a test."} for code in _ACKNOWLEDGED]
    return Environment.model_validate({key: value for key, value in lines.items() if value is not None})


_ACKNOWLEDGED = ("CAP001", "CAP002", "CAP004", "REG002")


@cache
def plan_of(name: str) -> Plan:
    """Every model of `ASKED` and `OFFLOADED`, and those of this repository."""
    where = environment(name)
    own = load_project(name, *folders_of(name)).catalogue.models
    models = {**own, **{model.name: model for model in _models()}}
    found = make_plan(Catalogue(MappingProxyType(models)), where)
    assert found.deployable, found.findings
    return found


@cache
def _models() -> tuple[Model, ...]:
    return tuple(_chosen([environment(name) for name in ENVIRONMENTS]))


def _chosen(everywhere: list[Environment]) -> Iterator[Model]:
    wanted = [*((kind, 0) for kind in ASKED), *OFFLOADED]
    left = [name for name in _POPULAR.read_text(encoding="utf-8").splitlines() if name in architectures()]
    for kind, offloaded in wanted:
        for weights in left:
            model = _model(kind, weights, offloaded)
            if all(_fits(model, where) for where in everywhere):
                if not kind.startswith("none"):
                    left.remove(weights)
                yield model
                break
        else:
            raise AssertionError(f"no model for {kind}")


def _model(kind: str, weights: str, offloaded: int) -> Model:
    name = kind.replace(":", "-")
    return Model.model_validate(
        {
            "name": f"{name}-with-{offloaded}-gib" if offloaded else name,
            "model": _CPU if kind.startswith("none") else f"hf://{weights}",
            "accelerator": kind,
            "replicas": 1,
            "availability": "single",
            "engine": {"maxModelLen": 4096},
            **({"features": {"kvOffload": {"sizeGib": offloaded}}} if offloaded else {}),
        }
    )


def _fits(model: Model, where: Environment) -> bool:
    alone = make_plan(Catalogue(MappingProxyType({model.name: model})), where)
    return bool(alone.models) and alone.deployable


@dataclass(frozen=True)
class Verdict:
    """One pod: its model's plan, and the node that Karpenter made for it. `asked`: the types in CreateFleet;
    `alone`: for no other pod, so that nothing else narrowed the choice; `elsewhere`: types that its zone
    does not offer; `moved`: the type of the node that the
    scheduler then took, if that one was made for another."""

    model: ModelPlan
    asked: frozenset[str]
    launched: str
    alone: bool
    capacity: str
    prices: Mapping[tuple[str, str], float]
    elsewhere: frozenset[str]
    lacking: tuple[str, ...]
    moved: str | None

    @property
    def differences(self) -> Iterator[str]:
        """In words; none where both agree."""
        placement = self.model.placement
        planned = {each.name for each in placement.instance_types}
        known = {each: self.prices.get((each, self.capacity)) for each in planned}
        if self.launched != placement.cheapest.name:
            yield f"launched {self.launched}, planned {placement.cheapest.name}"
        if more := self.asked - planned:
            yield f"asked for {', '.join(sorted(more))} as well"
        if self.alone and (fewer := planned - self.asked - self.elsewhere - self._dear_on_spot(planned)):
            yield f"did not ask for {', '.join(sorted(fewer))}"
        if unpriced := [each for each, price in known.items() if price is None]:
            yield f"knows no price of {', '.join(sorted(unpriced))}"
        priced = {each: price for each, price in known.items() if price is not None}
        if priced and priced.get(placement.cheapest.name, math.inf) > min(priced.values()):
            yield f"calls {min(priced, key=lambda each: priced[each])} the cheapest"
        if self.moved and self.moved not in planned:
            yield f"runs on {self.moved}"
        yield from self.lacking

    def _dear_on_spot(self, planned: set[str]) -> set[str]:
        """Karpenter leaves out what costs more on spot than the cheapest on demand."""
        if self.capacity != "spot":
            return set()
        least = min(self.prices.get((each, "on-demand"), math.inf) for each in planned)
        return {each for each in planned if self.prices.get((each, "spot"), 0) >= least}


def verdicts_of(plan: Plan, api: Api, ec2: Ec2, prices: Mapping[tuple[str, str], float]) -> Iterator[Verdict]:
    """Of every pod of a server that has a node."""
    instances = {
        f"aws:///{each['Placement']['AvailabilityZone']}/{each['InstanceId']}": each for each in ec2.launched
    }
    made = sorted(
        api.list("karpenter.sh/v1", "NodeClaim"), key=lambda item: item["metadata"]["creationTimestamp"]
    )
    models = {model.name: model for model in plan.models}
    for pod in api.list("v1", "Pod", plan.environment.namespace):
        labels = pod["metadata"]["labels"]
        if labels.get("app.kubernetes.io/component") != "server" or "nodeName" not in pod["spec"]:
            continue
        model = models[labels["app.kubernetes.io/instance"]]
        on = next(claim for claim in made if claim["status"].get("nodeName") == pod["spec"]["nodeName"])
        claim = next((each for each in made if _is_for(each, model, _requests(pod))), on)
        if _is_for(on, model, _requests(pod)):
            claim = on
        instance = instances[claim["status"]["providerID"]]
        yield Verdict(
            model=model,
            asked=frozenset(ec2.allowed[instance["InstanceId"]]),
            launched=instance["InstanceType"],
            alone=_is_for(claim, model, _requests(pod)),
            capacity=claim["metadata"]["labels"]["karpenter.sh/capacity-type"],
            prices=prices,
            elsewhere=frozenset(
                each.name
                for each in model.placement.instance_types
                if not offered(each.name, plan.environment.region, instance["Placement"]["AvailabilityZone"])
            ),
            lacking=tuple(_lacking(model, plan, claim)),
            moved=None if claim is on else instances[on["status"]["providerID"]]["InstanceType"],
        )


def _is_for(claim: Object, model: ModelPlan, requests: Mapping[str, float]) -> bool:
    """Whether Karpenter made it for such a pod alone."""
    wanted = {name: _amount(value) for name, value in claim["spec"]["resources"]["requests"].items()}
    pool = claim["metadata"]["labels"]["karpenter.sh/nodepool"]
    return pool == model.placement.pool_name and wanted == {**requests, "pods": 1}


def _requests(pod: Object) -> dict[str, float]:
    """As the scheduler sums them: what runs at once, or an init container that asks for more."""
    spec = pod["spec"]
    first = spec.get("initContainers", [])
    beside = [each for each in first if each.get("restartPolicy") == "Always"]
    total: dict[str, float] = {}
    for each in [*spec["containers"], *beside]:
        for name, value in each["resources"].get("requests", {}).items():
            total[name] = total.get(name, 0) + _amount(value)
    for each in first:
        for name, value in each["resources"].get("requests", {}).items():
            total[name] = max(total.get(name, 0), _amount(value))
    return total


def _lacking(model: ModelPlan, plan: Plan, claim: Object) -> Iterator[str]:
    """Where the plan counts on more of a node than Karpenter expects of it."""
    kind = instance_types()[claim["metadata"]["labels"]["node.kubernetes.io/instance-type"]]
    pool = plan.environment.pools[model.placement.pool_name]
    room = room_on(kind, volume_of(kind, pool))
    assert room is not None
    has = {name: _amount(value) for name, value in claim["status"]["allocatable"].items()}
    wanted = {
        "cpu": room.cpu_milli / 1000,
        "memory": room.memory.in_bytes,
        "ephemeral-storage": room.disk.in_bytes,
        **({} if kind.accelerator.vendor == "cpu" else {kind.accelerator.resource: room.accelerators}),
    }
    for name, amount in wanted.items():
        if has.get(name, 0) < amount:
            yield f"expects {has.get(name, 0):.0f} of {name}, the plan counts on {amount:.0f}"


_SUFFIXES = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGT", start=1)
}


def _amount(quantity: object) -> float:
    found = re.fullmatch(r"([\d.]+)([A-Za-z]*)", str(quantity))
    assert found, quantity
    return float(found[1]) * _SUFFIXES[found[2]]
