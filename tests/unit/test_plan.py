"""The plan of an environment: what each finding needs to appear, and what makes it go away."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.findings import Severity
from modelyard.spec import Environment
from tests.unit.given import a_model, a_plan, an_environment, codes

L40S = {"accelerator": "l40s", "limit": 64}


def pool(**changes: Any) -> dict[str, Any]:
    return {"pools": {"g6e": L40S | changes}}


@pytest.mark.parametrize(
    ("model", "environment", "expected"),
    [
        ({}, {}, []),
        ({"replicas": 1}, {}, ["AVAIL001"]),
        ({"replicas": 1, "availability": "single"}, {}, []),
        ({"replicas": 1, "availability": "single"}, pool(limit=1), ["ROLL002"]),
        ({"rollout": {"strategy": "surge"}}, pool(limit=2), ["ROLL001"]),
        ({"replicas": 4}, pool(limit=3), ["CAP002"]),
        ({"pool": "g7"}, {}, ["ENV002"]),
        ({"access": {"apiKey": "front-door"}}, {}, ["ENV002"]),
        ({"access": {"apiKey": "front-door"}}, {"secrets": {"front-door": "lab/front-door"}}, []),
        ({"accelerator": "gtx"}, {}, ["HW001"]),
        ({}, pool(accelerator="gtx"), ["CAP003", "HW001"]),
        ({"accelerator": "h100"}, {}, ["CAP003"]),
        ({"accelerator": "l40s:2"}, {}, ["CAP004"]),
        ({}, pool(instanceTypes=["g6e.xlarge"], zones=["us-east-2a"]), ["CAP001"]),
        ({}, pool(instanceTypes=["g6e.xlarge", "p5.4xlarge"]), ["CAP003"]),
        ({}, pool(instanceTypes=["g6e.xlarge", "g6e.tiny"]), ["CAP003"]),
        ({}, pool(instanceTypes=["g6e.xlarge", "g6f.xlarge"], accelerator="l4"), ["CAP003"] * 3),
        ({}, pool(capacity=["spot"]), ["CAP007"]),
        ({}, pool(capacity=["spot", "on-demand"]), []),
        ({}, pool(ami="al2023@latest"), ["AMI001"]),
        ({}, {"quotas": {"L-DB2E81BA": 4}}, ["QUOTA001"]),
        ({}, {"quotas": {"L-DB2E81BA": 12}}, []),  # two replicas and one more during a rollout, 4 vCPU each
        ({"startup": {"budget": "2m"}}, {}, ["LOAD001"]),
        ({"features": {"tools": True}}, {}, []),
        ({"model": "hf://microsoft/phi-4", "features": {"reasoning": True}}, {}, ["ENG001"]),
        ({"model": "hf://meta-llama/Llama-3.1-8B-Instruct"}, {}, ["HF001"]),
        ({"model": "hf://meta-llama/Llama-3.1-8B-Instruct"}, {"secrets": {"hf-token": "lab/hf"}}, []),
        ({"model": {"uri": "hf://Qwen/Qwen3-8B", "auth": "mine"}}, {}, ["ENV002"]),
        ({"engine": {"args": {"swap-space": 4}}}, {}, ["VLLM001"]),
        ({"engine": {"args": {"swap-space": 4}, "maxModelLen": 40960}}, {}, ["KV001", "VLLM001"]),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(
    model: dict[str, Any], environment: dict[str, Any], expected: list[str]
) -> None:
    plan = a_plan(a_model(**model), environment=an_environment(**environment))

    assert sorted(codes(plan.findings)) == expected
    assert all(finding.fix for finding in plan.findings)


def trainium(**changes: Any) -> Environment:
    return an_environment(pools={"trn2": {"accelerator": "trn2", "limit": 16} | changes})


def test_a_type_without_a_price_needs_a_reservation() -> None:
    model = a_model(model="hf://Qwen/Qwen3-8B", accelerator="trn2:16", availability="single", replicas=1)
    reserved = trainium(capacity=["reserved"], reservations=["cr-0123456789abcdef0"])

    assert "CAP006" in codes(a_plan(model, environment=trainium()).findings)
    assert "CAP006" not in codes(a_plan(model, environment=reserved).findings)


def test_models_fill_a_node_together() -> None:
    """Two halves of a node of four GPUs leave nothing idle."""
    one, other = (
        a_model(name=name, accelerator="l40s:2", availability="single") for name in ("one", "other")
    )

    assert codes(a_plan(one, other).findings) == []


def test_a_strict_environment_stops_at_a_warning() -> None:
    single = a_model(replicas=1)

    relaxed = a_plan(single)
    strict = a_plan(single, environment=an_environment(policy="strict"))

    assert relaxed.deployable
    assert not strict.deployable
    assert [f.level for f in relaxed.findings] == [Severity.WARNING]
    assert [f.level for f in strict.findings] == [Severity.ERROR]


def acknowledging(code: str, **more: str) -> Environment:
    accepted = {"code": code, "reason": "a test is not production"} | more
    return an_environment(policy="strict", acknowledge=[accepted], pools={"g6e": L40S | {"limit": 4}})


@pytest.mark.parametrize(
    ("environment", "model", "deployable"),
    [
        (acknowledging("AVAIL001"), {"replicas": 1}, True),
        (acknowledging("AVAIL001", model="qwen"), {"replicas": 1}, True),
        (acknowledging("AVAIL001", model="other"), {"replicas": 1}, False),
        (acknowledging("ROLL002"), {"replicas": 1}, False),
        (acknowledging("CAP002"), {"replicas": 8}, False),
    ],
)
def test_warnings_can_be_accepted_and_errors_cannot(
    environment: Environment, model: dict[str, Any], deployable: bool
) -> None:
    plan = a_plan(a_model(**model), environment=environment)

    assert plan.deployable is deployable
    assert len(plan.acknowledged) == int(deployable)


def test_a_model_that_cannot_run_leaves_the_others_planned() -> None:
    broken, right = a_model(name="broken", accelerator="gtx"), a_model(name="right")

    plan = a_plan(broken, right)

    assert [model.name for model in plan.models] == ["right"]
    assert not plan.deployable


def test_spot_counts_against_its_own_quota() -> None:
    both = an_environment(**pool(capacity=["spot", "on-demand"]))

    assert {need.code for need in a_plan(a_model(), environment=both).quotas} == {"L-DB2E81BA", "L-3819A6DF"}
