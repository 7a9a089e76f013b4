"""The smallest valid model, environment and plan, for tests to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from modelyard.findings import Finding
from modelyard.hardware import Prices, accelerators
from modelyard.memory.serving import Serving, plan_serving
from modelyard.planning import Plan, plan
from modelyard.spec import Catalogue, Environment, Model
from modelyard.spec.yaml_source import read_yaml

REGION = "us-east-2"

PAGED = {"receivers": {"on-call": {"sns": {"emails": ["on-call@example.com"]}}}}
"""`monitoring` of an environment whose alerts reach somebody."""

ANSWER_KEYS = [
    "id",
    "weightsGiB",
    "activationGiB",
    "nonTorchGiB",
    "cudaGraphGiB",
    "kvCacheGiB",
    "kvCacheTokens",
    "maxConcurrency",
    "fits",
    "longestLen",
    "findings",
]
"""What an answer of `modelyard estimate` holds, in this order: others rely on it."""


@dataclass(frozen=True)
class Answer:
    """What one run of the command leaves behind."""

    code: int | str | None
    out: str
    err: str


Modelyard = Callable[..., Answer]


def a_model(**changes: Any) -> Model:
    """Three lines of YAML, `changes` in YAML's spelling over them."""
    lines = {"name": "qwen", "model": "hf://Qwen/Qwen3-32B-FP8", "accelerator": "l40s", "replicas": 2}
    return Model.model_validate(lines | changes)


def an_environment(**changes: Any) -> Environment:
    """A relaxed environment with one wide pool of L40S."""
    lines = {
        "name": "lab",
        "account": "123456789012",
        "region": REGION,
        "availabilityZones": [f"{REGION}a", f"{REGION}b"],
        "pools": {"g6e": {"accelerator": "l40s", "limit": 64}},
    }
    return Environment.model_validate(lines | changes)


def a_plan(*models: Model, environment: Environment | None = None, prices: Prices | None = None) -> Plan:
    catalogue = Catalogue(MappingProxyType({model.name: model for model in models}))
    return plan(catalogue, environment or an_environment(), prices=prices)


def served(model: Model) -> Serving | list[Finding]:
    """`model` on the accelerators that it names, wherever they may be sold."""
    kind = accelerators()[model.accelerator.type]
    return plan_serving(model, kind, model.accelerator.count or 1)


def codes(findings: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def yaml_data(path: Path) -> dict[str, Any]:
    source = read_yaml(path)
    assert not isinstance(source, Finding), source
    return source.data
