"""Where a model runs: its stated accelerator and pool, or for `auto` the cheapest that fits."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.findings import Finding
from modelyard.hardware import Prices, accelerator_named, accelerators
from modelyard.memory.loaded_model import known_architecture
from modelyard.memory.serving import Serving, plan_serving
from modelyard.planning.admission import PodRequest
from modelyard.planning.cost import Cost, plan_cost
from modelyard.planning.packing import PodKind, pod_kind
from modelyard.planning.placement import Placement, nearest_miss, place, pod_request
from modelyard.reading import suggestion
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model

_COUNTS = (1, 2, 4, 8, 16)
_USUAL_VCPU = 8


@dataclass(frozen=True)
class Choice:
    """Serving settings of a model and its placement."""

    serving: Serving
    pod: PodRequest
    placement: Placement

    @property
    def kind(self) -> PodKind:
        """The pods as the scheduler sees them."""
        return pod_kind(self.pod, self.placement, self.serving.nodes)


def choose(model: Model, environment: Environment, prices: Prices) -> Choice | list[Finding]:
    """The choice for `model`, or every reason why there is none."""
    if model.pool and model.pool not in environment.pools:
        elsewhere = choose(model.model_copy(update={"pool": None}), environment, prices)
        return [
            *(elsewhere if isinstance(elsewhere, list) else []),
            Finding(
                "ENV002",
                f"pool '{model.pool}' is not defined in environment {environment.name}",
                suggestion(str(model.pool), environment.pools)
                + f"use one of {', '.join(environment.pools) or 'none: define a pool'}",
                subject=model.name,
                field=("pool",),
            ),
        ]
    if model.accelerator.type == "auto":
        return _cheapest(model, environment, prices)
    kind = accelerator_named(model.accelerator.type)
    if kind is None:
        return [
            Finding(
                "HW001",
                f"unknown accelerator '{model.accelerator.type}'",
                suggestion(model.accelerator.type, accelerators())
                + f"use auto, none or one of {', '.join(accelerators())}",
                subject=model.name,
                field=("accelerator",),
            )
        ]
    count = model.accelerator.count or (_USUAL_VCPU if kind.vendor == "cpu" else 1)
    serving = plan_serving(model, kind, count, prices)
    if isinstance(serving, list):
        return serving
    return _in_some_pool(serving, environment, prices)


def _in_some_pool(serving: Serving, environment: Environment, prices: Prices) -> Choice | list[Finding]:
    model = serving.model
    wanted = serving.accelerator.name
    named = [model.pool] if model.pool else list(environment.pools)
    pools = [name for name in named if environment.pools[name].accelerator == wanted]
    if not pools:
        have = ", ".join(f"{name} ({pool.accelerator})" for name, pool in environment.pools.items())
        return [
            Finding(
                "CAP003",
                f"no pool of environment {environment.name} has {wanted}"
                if not model.pool
                else f"pool {model.pool} has {environment.pools[model.pool].accelerator}, not {wanted}",
                f"choose among {have or 'no pools: define one'}",
                subject=model.name,
                field=("pool",) if model.pool else ("accelerator",),
            )
        ]
    request = pod_request(serving)
    if serving.nodes > 1 and not any(environment.pools[name].fabric == "efa" for name in pools):
        return [_no_fabric(serving, pools)]
    if serving.nodes > 1:
        pools = [name for name in pools if environment.pools[name].fabric == "efa"]
    placements = [place(request, name, environment, prices) for name in pools]
    admitted = [placement for placement in placements if placement.instance_types]
    if admitted:
        return Choice(serving, request, min(admitted, key=lambda p: _price(p, prices)))
    nearest = nearest_miss(placements)
    missed = f"nearest miss {nearest.instance_type} {nearest.reason}" if nearest else "the pool is empty"
    return [
        Finding(
            "CAP003",
            f"no instance type of pool {' or '.join(pools)} admits {request.accelerators} {_units(wanted)}, "
            f"{request.cpu_milli / 1000:g} CPU and {request.memory}: {missed}",
            "widen the pool's instanceTypes or limit, or ask for fewer accelerators",
            subject=model.name,
            field=("accelerator",),
        )
    ]


def _units(accelerator: str) -> str:
    return "vCPU" if accelerator == "none" else accelerator


def _no_fabric(serving: Serving, pools: list[str]) -> Finding:
    return Finding(
        "NET001",
        f"{serving.count} {serving.accelerator.name} are {serving.nodes} nodes, and pool {' or '.join(pools)} has no fabric "
        "between them",
        "set the pool's fabric to efa, or ask for no more accelerators than a node has",
        subject=serving.model.name,
        field=("accelerator",),
    )


_TOO_SMALL = frozenset({"FIT001", "KV001", "CAP003"})
"""Findings that a larger accelerator mends."""


def _price(placement: Placement, prices: Prices) -> float:
    price = prices.of(placement.cheapest).usd_per_hour
    return float("inf") if price is None else price


def _cheapest(model: Model, environment: Environment, prices: Prices) -> Choice | list[Finding]:
    """The pool's accelerator and count with the lowest cost of all replicas at the floor."""
    if isinstance(arch := known_architecture(model), Finding):
        return [arch]
    priced: list[tuple[float, int, int, Choice]] = []
    reasons: dict[str, list[Finding]] = {}  # by accelerator, of the largest count that could be split
    kinds = {pool.accelerator for name, pool in environment.pools.items() if model.pool in (None, name)}
    for kind in sorted(kinds & set(accelerators())):
        for count in (model.accelerator.count,) if model.accelerator.count else _COUNTS:
            serving = plan_serving(model, accelerators()[kind], count)
            found = serving if isinstance(serving, list) else _in_some_pool(serving, environment, prices)
            if isinstance(found, Choice):
                cost = choice_cost(found, model, environment, prices)
                floor = float("inf") if cost.floor is None else cost.floor
                priced.append((floor, cost.idle_accelerators, len(priced), found))
            else:
                reasons[kind] = [each for each in found if each.code != "TP001"] or reasons.get(kind, found)
    if priced:
        return min(priced, key=lambda option: option[:3])[3]
    said = [reason for each in reasons.values() for reason in each]
    last = "; ".join(dict.fromkeys(reason.message for reason in said)) or "the environment has no pools"
    ways = [reason.fix for reason in said if reason.code not in _TOO_SMALL]
    if not said or len(ways) < len(said):
        ways.append("add a pool with a larger accelerator, or use a quantized checkpoint")
    return [
        Finding(
            "CAP003",
            f"no accelerator of environment {environment.name} holds the model: {last}",
            "; or ".join(dict.fromkeys(ways)),
            subject=model.name,
            field=("accelerator",),
        )
    ]


def choice_cost(choice: Choice, model: Model, environment: Environment, prices: Prices) -> Cost:
    """The cost of `choice`; replicas spread over the pool's zones unless the model is `availability:
    single`."""
    zones = 1 if model.availability == "single" else len(environment.pool_zones(choice.placement.pool))
    return plan_cost(
        choice.placement,
        model.replicas,
        accelerators=choice.serving.count,
        zones=zones,
        prices=prices,
    )
