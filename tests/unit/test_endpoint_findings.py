"""Settings that would be open to everybody, never scale up, or cannot be divided are reported before the
deploy."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.planning import Plan
from tests.unit.given import a_model, a_plan, an_environment, codes

R1 = "hf://deepseek-ai/DeepSeek-R1"
H100 = {"p5": {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": 64}}
WITH_FABRIC = {"p5": {**H100["p5"], "fabric": "efa"}}
INTERNAL = {"domain": "models.example.internal", "certificate": "tls", "cidrs": ["10.0.0.0/8"]}
WAYS_IN = {
    "secrets": {"tls": "lab/tls", "clients": "lab/clients", "master": "lab/master"},
    "gateways": {"internal": INTERNAL, "public": {**INTERNAL, "domain": "models.example.org"}},
    "litellm": {"masterKey": "master"},
}
HOURS = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "timezone": "Europe/Berlin"}


def planned(model: dict[str, Any], environment: dict[str, Any] | None = None) -> Plan:
    return a_plan(a_model(**model), environment=an_environment(**(environment or {})))


def found(code: str, plan: Plan) -> list[tuple[str | int, ...]]:
    return [finding.field for finding in plan.findings if finding.code == code]


@pytest.mark.parametrize(
    ("model", "environment", "code", "field"),
    [
        ({"access": {"exposure": "internal"}}, {}, "SEC004", ("access", "exposure")),
        ({"access": {"exposure": "public"}}, WAYS_IN, "SEC004", ("access", "exposure")),
        ({"features": {"sleep": True}}, {}, "SEC005", ("features", "sleep")),
        (
            {"engine": {"env": {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}}},
            {},
            "SEC005",
            ("engine", "env", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"),
        ),
        ({"replicas": {"min": 0, "max": 2}}, {}, "ZERO001", ("replicas",)),
        (
            {"replicas": {"min": 0, "max": 2}, "scaling": {"activator": "gateway"}},
            {},
            "ZERO001",
            ("scaling", "activator"),
        ),
        (
            {"replicas": {"min": 1, "max": 2}, "scaling": {"metric": "kv-cache", "target": 99}},
            {},
            "HPA001",
            ("scaling", "target"),
        ),
        (
            {"replicas": {"min": 1, "max": 2}, "scaling": {"schedule": [{**HOURS, "replicas": 5}]}},
            {},
            "HPA001",
            ("scaling", "schedule", 0, "replicas"),
        ),
    ],
)
def test_a_setting_that_cannot_do_what_it_says_is_found(
    model: dict[str, Any], environment: dict[str, Any], code: str, field: tuple[str | int, ...]
) -> None:
    assert field in found(code, planned(model, environment))


@pytest.mark.parametrize(
    "model",
    [
        {"access": {"exposure": "internal", "host": "qwen.models.example.internal"}},
        {"access": {"exposure": "public", "host": "qwen.models.example.org", "apiKey": "clients"}},
        {"replicas": {"min": 0, "max": 2}, "scaling": {"activator": "gateway"}},
        {"replicas": {"min": 0, "max": 2}, "scaling": {"schedule": [{**HOURS, "replicas": 2}]}},
        {"replicas": {"min": 1, "max": 2}, "scaling": {"metric": "kv-cache", "target": 90}},
    ],
)
def test_the_same_settings_with_what_they_need_are_not(model: dict[str, Any]) -> None:
    plan = planned(model, WAYS_IN)

    assert not {"SEC004", "SEC005", "HPA001", "ZERO001"} & set(codes(plan.findings))
    assert plan.deployable


def test_a_model_larger_than_a_node_takes_whole_nodes_and_wants_a_fabric() -> None:
    model = {
        "model": R1,
        "accelerator": "h100:16",
        "replicas": 1,
        "availability": "single",
        "engine": {"maxModelLen": 8192},
    }

    slow, fast = planned(model, {"pools": H100}), planned(model, {"pools": WITH_FABRIC})

    assert "NET001" in codes(slow.findings)
    assert "NET001" not in codes(fast.findings)
    [plan] = fast.models
    assert (plan.serving.nodes, plan.pod.accelerators) == (2, 8)
    ranks = plan.serving.topology.split
    assert (ranks.tensor, ranks.pipeline) == (8, 2)
    [one_node] = planned(
        {**model, "model": "hf://Qwen/Qwen3-32B", "accelerator": "h100:8"}, {"pools": H100}
    ).models
    assert plan.cost.floor is not None
    assert one_node.cost.floor is not None
    assert plan.cost.floor == pytest.approx(2 * one_node.cost.floor)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"accelerator": "h100:12"}, "whole nodes of 8"),
        ({"parallelism": {"tensor": 16, "pipeline": 1}}, "would cross nodes"),
        ({"parallelism": {"tensor": 3}}, "is not the 16 ranks"),
        ({"model": "hf://meta-llama/Llama-3.3-70B-Instruct", "parallelism": {"data": 2}}, "has no experts"),
    ],
)
def test_a_division_that_cannot_be_is_refused(changes: dict[str, Any], says: str) -> None:
    model = {"model": R1, "accelerator": "h100:16", "engine": {"maxModelLen": 8192}}

    plan = planned({**model, **changes}, {"pools": WITH_FABRIC})

    assert not plan.models
    assert any(finding.code == "TP001" and says in finding.message for finding in plan.findings), (
        plan.findings
    )


def test_a_model_on_cpus_needs_the_checkpoint_that_its_engine_reads() -> None:
    pools = {"pools": {"cpu": {"accelerator": "none", "limit": 64}}}
    gguf = {"uri": "hf://Qwen/Qwen3-8B-GGUF", "file": "Qwen3-8B-Q4_K_M.gguf", "architecture": "Qwen/Qwen3-8B"}

    refused = planned({"accelerator": "none:16"}, pools)
    taken = planned({"accelerator": "none:16", "model": gguf, "engine": {"maxModelLen": 8192}}, pools)

    assert "ENG001" in codes(refused.findings)
    [plan] = taken.models
    assert plan.serving.release.engine == "llama-server"
    assert plan.pod.accelerators == 0 or plan.serving.accelerator.vendor == "cpu"


def test_drafts_and_adapters_take_their_memory() -> None:
    def cache(**changes: Any) -> int:
        model = {"model": "hf://meta-llama/Llama-3.1-8B-Instruct", "engine": {"maxModelLen": 16384}}
        [plan] = planned({**model, **changes}, {"secrets": {"hf-token": "lab/hf-token"}}).models
        return plan.serving.ledger.kv_cache.in_bytes

    eagle = {"method": "eagle3", "model": "hf://yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "tokens": 3}
    adapter = {"name": "legal", "uri": "hf://acme/legal", "rank": 64}

    assert cache(speculativeDecoding=eagle) < cache()
    assert cache(adapters=[adapter]) < cache()
    assert cache(adapters=[adapter, {**adapter, "name": "medical"}]) < cache(adapters=[adapter])
