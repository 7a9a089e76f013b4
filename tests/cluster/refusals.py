"""Models that a pool cannot take, each for another reason: the plan must know, and Karpenter finds out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from modelyard.planning import Plan
from modelyard.planning import plan as make_plan
from modelyard.project import load_project
from modelyard.spec import Catalogue, Environment, Model
from tests.contract.conftest import folders_of


@dataclass(frozen=True)
class Refusal:
    """`pool` takes the model, and with `changes` it does not: the plan then has the finding `code`, and
    Karpenter says `words` of its pod."""

    name: str
    code: str
    words: str
    accelerator: str
    pool: Mapping[str, Any]
    changes: Mapping[str, Any]
    model: Mapping[str, Any] = field(default_factory=dict)


_TOO_SMALL = "no instance type has enough resources"
_NO_TYPE = "incompatible requirements, key karpenter.sh/nodepool"  # of the pool it says nothing: there is no type left in it

REFUSALS = (
    Refusal(
        "too-little-memory",
        code="CAP003",
        words=_TOO_SMALL,
        accelerator="l40s:1",
        pool={"accelerator": "l40s"},
        changes={"instanceTypes": ["g6e.xlarge"]},
        model={"features": {"kvOffload": {"sizeGib": 64}}},
    ),
    Refusal(
        "too-few-accelerators",
        code="CAP003",
        words=_TOO_SMALL,
        accelerator="l4:8",
        pool={"accelerator": "l4"},
        changes={"instanceTypes": ["g6.12xlarge"]},
    ),
    Refusal(
        "limit-below-a-node",
        code="CAP003",
        words=_TOO_SMALL,
        accelerator="a10g:8",
        pool={"accelerator": "a10g"},
        changes={"limit": 4},
    ),
    Refusal(
        "no-price",
        code="CAP003",
        words=_NO_TYPE,
        accelerator="h200:8",
        pool={
            "accelerator": "h200",
            "instanceTypes": ["p5e.48xlarge"],
            "prices": {"p5e.48xlarge": {"on-demand": 40}},
        },
        changes={"prices": {}},
    ),
    Refusal(
        "zone-without-the-type",
        code="CAP009",
        words=_NO_TYPE,
        accelerator="rtx-pro-6000:1",
        pool={"accelerator": "rtx-pro-6000", "instanceTypes": ["g7e.8xlarge"]},
        changes={"zones": ["us-east-2c"]},
    ),
)


def plan_of_all(*, changed: bool) -> Plan:
    """Of every model in its pool, as the pool is or `changed`."""
    base = load_project("dev", *folders_of("dev")).environment
    assert base is not None
    pools = {each.name: {"limit": 64, **each.pool, **(each.changes if changed else {})} for each in REFUSALS}
    where = Environment.model_validate(base.model_dump(mode="json", by_alias=True) | {"pools": pools})
    models = {each.name: _model(each) for each in REFUSALS}
    return make_plan(Catalogue(MappingProxyType(models)), where)


def _model(refusal: Refusal) -> Model:
    return Model.model_validate(
        {
            "name": refusal.name,
            "model": "hf://meta-llama/Llama-3.1-8B-Instruct",
            "accelerator": refusal.accelerator,
            "pool": refusal.name,
            "replicas": 1,
            "availability": "single",
            "engine": {"maxModelLen": 4096},
            **refusal.model,
        }
    )
