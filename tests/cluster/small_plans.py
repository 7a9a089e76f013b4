"""Plans of two models in one pool: few nodes, so that a test sees each of them come and go."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from modelyard.planning import Plan
from modelyard.planning import plan as make_plan
from modelyard.project import load_project
from modelyard.spec import Catalogue, Environment, Model
from tests.contract.conftest import folders_of

PAIR, SINGLE, POOL = "pair", "single", "g6e"
_OPEN = ("REG002", "PAGE001")


def small_plan(*, strict: bool = False, **pool: Any) -> Plan:
    """`pair` with two replicas, `single` with one, and nothing else in dev's pool for L40S."""
    base = load_project("dev", *folders_of("dev")).environment
    assert base is not None
    lines = base.model_dump(mode="json", by_alias=True)
    lines["pools"] = {POOL: {"accelerator": "l40s", "limit": 16, **pool}}
    if strict:
        reason = "Models of a test."
        lines |= {"policy": "strict", "acknowledge": [{"code": code, "reason": reason} for code in _OPEN]}
    given = {"model": "hf://Qwen/Qwen3-32B-FP8", "accelerator": "l40s"}
    models = [
        Model.model_validate({"name": PAIR, "replicas": 2, **given}),
        Model.model_validate({"name": SINGLE, "replicas": 1, "availability": "single", **given}),
    ]
    catalogue = Catalogue(MappingProxyType({model.name: model for model in models}))
    found = make_plan(catalogue, Environment.model_validate(lines))
    assert found.deployable, found.findings
    return found
