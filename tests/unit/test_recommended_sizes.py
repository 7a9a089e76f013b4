"""Sizes recommended by vendors and the source material, against the ledger; docs/how-to/size-a-model.md has
the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelyard.memory.estimate import Estimate, estimate
from modelyard.spec.estimate import EstimateRequest

RECOMMENDED = {
    "Qwen3-32B-FP8 on one L40S": {
        "model": "Qwen/Qwen3-32B-FP8",
        "accelerator": "l40s",
        "gpuMemoryUtilization": 0.95,
        "maxModelLen": 32768,
    },
    "Llama 3.3 70B on four H100": {
        "model": "meta-llama/Llama-3.3-70B-Instruct",
        "accelerator": "h100",
        "tensorParallel": 4,
    },
    "Llama 3.1 405B FP8 on eight H100": {
        "model": "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",
        "accelerator": "h100",
        "tensorParallel": 8,
    },
    "Llama 3.1 70B AWQ on one H100": {
        "model": "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
        "accelerator": "h100",
        "maxModelLen": 32768,
    },
}


def answered(name: str, **changes: object) -> Estimate:
    return estimate(EstimateRequest.model_validate({**RECOMMENDED[name], **changes}))


@pytest.mark.parametrize("name", RECOMMENDED)
def test_what_is_recommended_fits(name: str) -> None:
    found = answered(name)

    assert found.fits, [str(finding) for finding in found.findings]
    assert found.longest >= found.max_model_len


def test_the_l40s_holds_32768_tokens_at_no_less_than_the_recommended_share() -> None:
    """At vLLM's own share the last gigabyte of a request is missing; an fp8 cache makes up for it."""
    name = "Qwen3-32B-FP8 on one L40S"

    assert not answered(name, gpuMemoryUtilization=0.92).fits
    assert answered(name, gpuMemoryUtilization=0.92, kvCacheDtype="fp8").fits
    assert answered(name).ledger is not None


def test_the_whole_context_of_an_awq_70b_takes_more_than_one_h100() -> None:
    name = "Llama 3.1 70B AWQ on one H100"

    assert not answered(name, maxModelLen=131072).fits
    assert answered(name, maxModelLen=131072, kvCacheDtype="fp8").fits


def row(name: str) -> str:
    """The line of the table in the documentation."""
    found = answered(name)
    assert found.ledger is not None
    ledger = found.ledger
    amounts = (ledger.weights, ledger.activation, ledger.non_torch, ledger.cuda_graphs, ledger.kv_cache)
    cells = [f"{ledger.request.gpu_memory_utilization:g}", *(f"{amount.in_gib:.1f}" for amount in amounts)]
    return f"| {name} | {' | '.join(cells)} | {found.longest} |"


@pytest.mark.parametrize("name", RECOMMENDED)
def test_the_documentation_states_what_is_computed(name: str, root: Path) -> None:
    assert row(name) in (root / "docs/how-to/size-a-model.md").read_text(encoding="utf-8").splitlines()
