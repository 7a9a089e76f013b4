"""Properties of the memory model for every model, GPU and setting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import architectures
from modelyard.memory.estimate import Estimate, estimate
from modelyard.spec.estimate import EstimateRequest

MODELS = sorted(architectures())
VERSIONS = ("0.4.0", "0.6.6", "0.7.3", "0.8.3", "0.10.2", "0.14.0", "0.19.0", "0.33.0")

questions = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "acceleratorMemoryGiB": st.floats(8, 300),
        "computeCapability": st.sampled_from(("8.0", "8.6", "8.9", "9.0", "10.0", "12.0")),
        "tensorParallel": st.sampled_from((1, 2, 4, 8)),
        "pipelineParallel": st.sampled_from((1, 1, 1, 2)),
        "expertParallel": st.booleans(),
        "gpuMemoryUtilization": st.floats(0.5, 0.95),
        "maxModelLen": st.integers(256, 32768),
        "maxNumSeqs": st.integers(1, 1024),
        "maxNumBatchedTokens": st.integers(1024, 16384),
        "kvCacheDtype": st.sampled_from(("auto", "fp8")),
        "enforceEager": st.booleans(),
        "engineVersion": st.sampled_from(VERSIONS),
    }
)


def answer(question: dict[str, Any], **changes: Any) -> Estimate:
    return estimate(EstimateRequest.model_validate({**question, **changes}))


def fitting(question: dict[str, Any]) -> Estimate:
    found = answer(question)
    assume(found.fits)
    return found


@settings(max_examples=150, deadline=None)
@given(questions, st.floats(1.0, 2.0))
def test_more_memory_keeps_a_fit(question: dict[str, Any], factor: float) -> None:
    fitting(question)

    assert answer(question, acceleratorMemoryGiB=question["acceleratorMemoryGiB"] * factor).fits


@settings(max_examples=150, deadline=None)
@given(questions, st.data())
def test_a_lower_length_keeps_a_fit(question: dict[str, Any], data: st.DataObject) -> None:
    fitting(question)

    assert answer(question, maxModelLen=data.draw(st.integers(1, question["maxModelLen"]))).fits


@settings(max_examples=150, deadline=None)
@given(questions, st.data())
def test_fewer_sequences_keep_a_fit(question: dict[str, Any], data: st.DataObject) -> None:
    fitting(question)

    assert answer(question, maxNumSeqs=data.draw(st.integers(1, question["maxNumSeqs"]))).fits


@settings(max_examples=200, deadline=None)
@given(questions)
def test_the_longest_length_fits_and_one_block_more_does_not(question: dict[str, Any]) -> None:
    found = answer(question)
    assume(found.ledger is not None and found.longest > 0)
    assert found.ledger is not None
    limit = max(found.ledger.request.arch.max_position, found.max_model_len)

    assert holds(question, found.longest)
    if found.longest < limit:
        assert not holds(question, found.longest + found.ledger.layout.block_size)


def holds(question: dict[str, Any], length: int) -> bool:
    """Whether an engine that is started with `length` has the cache for it."""
    ledger = answer(question, maxModelLen=length).ledger
    assert ledger is not None
    return ledger.holds(length)


@settings(max_examples=200, deadline=None)
@given(questions)
def test_ledgers_sum_to_the_memory_of_the_gpu(question: dict[str, Any]) -> None:
    found = answer(question)
    assume(found.ledger is not None)
    assert found.ledger is not None
    ledger = found.ledger
    spent = (
        ledger.outside
        + ledger.weights
        + ledger.adapters
        + ledger.activation
        + ledger.non_torch
        + ledger.graphs_in_budget
        + ledger.kv_cache
    )

    assert spent == ledger.total


@settings(max_examples=100, deadline=None)
@given(questions)
def test_an_fp8_cache_holds_no_fewer_tokens(question: dict[str, Any]) -> None:
    plain = answer(question, kvCacheDtype="auto", engineVersion="0.33.0").ledger
    halved = answer(question, kvCacheDtype="fp8", engineVersion="0.33.0").ledger
    assume(plain is not None and halved is not None and plain.kv_cache.in_bytes > 0)
    assert plain is not None
    assert halved is not None

    assert halved.kv_tokens(question["maxModelLen"]) >= plain.kv_tokens(question["maxModelLen"]) * 0.98


@settings(max_examples=100, deadline=None)
@given(questions)
def test_more_ranks_hold_no_more_weights_each(question: dict[str, Any]) -> None:
    one = answer(question, tensorParallel=1, pipelineParallel=1, expertParallel=False).ledger
    several = answer(question, pipelineParallel=1, expertParallel=False).ledger
    assume(one is not None and several is not None)
    assert one is not None
    assert several is not None

    assert several.weights <= one.weights


@pytest.mark.parametrize("model", MODELS)
def test_every_model_of_the_table_gives_a_ledger(model: str) -> None:
    stored = {"quantization": "gguf Q4_K_M"} if model.lower().endswith("gguf") else {}
    found = answer({"model": model, "accelerator": "b300", **stored})

    assert found.ledger is not None, [finding.message for finding in found.findings]
