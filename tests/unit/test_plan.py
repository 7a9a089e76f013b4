"""The plan of an environment: when each finding appears, and what fixes it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from modelyard.cli.plan import plan_json
from modelyard.findings import Severity
from modelyard.spec import Environment
from tests.unit.given import PAGED, a_model, a_plan, an_environment, codes

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
        ({"accelerator": "l40s:4"}, pool(limit=2), ["CAP003"]),
        ({}, pool(instanceTypes=["g6e.12xlarge"], limit=2), ["CAP003", "CAP003"]),  # the pool and its model
        ({"accelerator": "l40s:4"}, pool(instanceTypes=["g6e.12xlarge"], limit=15), ["CAP008"]),
        ({"accelerator": "l40s:8"}, pool(zones=["us-east-2a"]), ["CAP001"]),
        ({"engine": {"maxNumSeqs": 512}}, {}, ["KV002"]),
        ({"engine": {"maxNumSeqs": 16}}, {}, []),
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


def h100(limit: int) -> Environment:
    """Nodes of eight and no others."""
    pools = {"p5": {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": limit}}
    return an_environment(pools=pools, secrets={"hf-token": "lab/hf-token"})


def test_a_whole_node_is_not_promised_to_a_model_that_halves_of_others_may_keep_it_from() -> None:
    halves = a_model(name="halves", accelerator="h100:4")
    whole = a_model(name="whole", model="hf://meta-llama/Llama-3.3-70B-Instruct", accelerator="h100:8")

    [finding] = [f for f in a_plan(halves, whole, environment=h100(24)).findings if f.code == "CAP002"]

    assert finding.message == (
        "pool p5 allows 24 h100, models can ask for 32 in whole nodes: "
        "halves 2 × 4 on nodes of 8, whole 2 × 8"
    )
    assert finding.fix == "raise its limit to 32, or lower replicas"
    assert "CAP002" not in codes(a_plan(halves, whole, environment=h100(32)).findings)


def test_models_share_the_room_for_a_surge() -> None:
    """Two models of one accelerator each and one to spare: both surge, and wait for each other."""
    plan = a_plan(a_model(name="one"), a_model(name="other"), environment=an_environment(**pool(limit=5)))

    assert [model.rollout.strategy for model in plan.models] == ["surge", "surge"]


def test_a_pool_in_few_zones_may_have_none_that_offers_the_type() -> None:
    """AWS offers p5e.48xlarge in one of the four zones of us-west-2."""
    zones = ["us-west-2a", "us-west-2b"]
    reserved = {"capacity": ["reserved"], "reservations": ["cr-0123456789abcdef0"]}
    pools = {"p5e": {"accelerator": "h200", "instanceTypes": ["p5e.48xlarge"], "limit": 16, **reserved}}
    environment = an_environment(region="us-west-2", availabilityZones=zones, pools=pools)

    [finding] = a_plan(a_model(accelerator="h200:8"), environment=environment).findings

    assert finding.code == "CAP009"
    assert "usw2-az3 of 4 zones" in finding.message


def test_models_fill_a_node_together() -> None:
    """Two halves of a node of four GPUs leave nothing idle."""
    one, other = (
        a_model(name=name, accelerator="l40s:2", availability="single") for name in ("one", "other")
    )

    assert codes(a_plan(one, other).findings) == []


def test_a_strict_environment_stops_at_a_warning() -> None:
    single = a_model(replicas=1)

    relaxed = a_plan(single)
    strict = a_plan(
        single,
        environment=an_environment(policy="strict", registry="mirror.example.com/all", monitoring=PAGED),
    )

    assert relaxed.deployable
    assert not strict.deployable
    assert [f.level for f in relaxed.findings] == [Severity.WARNING]
    assert [f.level for f in strict.findings] == [Severity.ERROR]


def acknowledging(code: str, **more: str) -> Environment:
    accepted = {"code": code, "reason": "a test is not production"} | more
    pools = {"g6e": L40S | {"limit": 4}}
    return an_environment(
        policy="strict",
        acknowledge=[accepted],
        pools=pools,
        registry="mirror.example.com/all",
        monitoring=PAGED,
    )


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


def test_json_tells_the_pods_and_stages_of_a_replica_on_several_nodes() -> None:
    environment = an_environment(pools={"p5": {"accelerator": "h100", "limit": 64, "fabric": "efa"}})
    model = a_model(model="hf://deepseek-ai/DeepSeek-V3", accelerator="h100:16")

    [planned] = plan_json(a_plan(model, environment=environment), date(2026, 11, 22))["models"]

    assert (planned["count"], planned["podsPerReplica"], planned["pod"]["accelerators"]) == (16, 2, 8)
    assert (planned["tensorParallel"], planned["pipelineParallel"], planned["dataParallel"]) == (8, 2, 1)


def test_nodes_that_talk_by_tcp_are_named_with_the_image() -> None:
    environment = an_environment(pools={"p5": {"accelerator": "h100", "limit": 64, "fabric": "efa"}})
    group = a_model(model="hf://deepseek-ai/DeepSeek-V3", accelerator="h100:16")

    found = [each for each in a_plan(group, environment=environment).findings if each.code == "NET002"]

    assert [each.message for each in found] == [
        "vllm/vllm-openai:v0.33.0 has no EFA libraries: the 2 nodes of a replica exchange activations by TCP"
    ]
    assert codes(a_plan(a_model()).findings) == []
