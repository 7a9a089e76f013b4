"""Plan, size and estimate give the same answer to the same question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import Architecture, architectures
from modelyard.findings import Severity
from modelyard.hardware import Prices, accelerators
from modelyard.memory import Estimate, MemoryRequest, Serving, estimate
from modelyard.planning.sizing import size_model
from modelyard.spec import Model
from modelyard.spec.estimate import EstimateRequest
from tests.unit.given import REGION, a_model, served

PROFILE = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
OF_MEMORY = {"FIT001", "KV001", "BATCH001", "UTIL001"}
ENGINES = {"nvidia": "vllm", "aws": "vllm-neuron"}


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, str, int, dict[str, Any]]:
    """A model of the table, an accelerator, a count, and everything that both ways can be told."""
    known = [
        arch for arch in map(architectures().__getitem__, architectures().repositories()) if not arch.gated
    ]
    arch = draw(st.sampled_from(known))
    kind = draw(st.sampled_from(sorted(accelerators())))
    return (
        arch.model_id,
        kind,
        draw(st.sampled_from([1, 2, 4, 8])),
        {
            "maxModelLen": min(
                arch.max_position, draw(st.sampled_from([256, 300, 2000, 8192, 40960, 10**6]))
            ),
            "maxNumSeqs": draw(st.sampled_from([1, 8, 256, 257, 512])),
            "maxNumBatchedTokens": draw(st.sampled_from([256, 300, 512, 2048, 8192])),
            "gpuMemoryUtilization": draw(st.sampled_from([0.3, 0.85, 0.9, 0.95])),
            "kvCacheDtype": draw(st.sampled_from(["auto", "fp8"])),
            "enforceEager": draw(st.booleans()),
        },
    )


def file_of(repository: str, kind: str, count: int, stated: dict[str, Any]) -> Model:
    encoder = architectures()[repository].encoder
    task = {"task": "embed"} if encoder else {}
    return a_model(model=f"hf://{repository}", accelerator=f"{kind}:{count}", engine=stated, **task)


def estimated(repository: str, kind: str, count: int, stated: dict[str, Any]) -> Estimate:
    accelerator = accelerators()[kind]
    question = {
        "model": repository,
        "accelerator": kind,
        "tensorParallel": count * accelerator.cores,
        "engine": ENGINES[accelerator.vendor],
    }
    return estimate(EstimateRequest.model_validate(question | stated))


def known_of(arch: Architecture) -> Architecture:
    """Without name and sources, which say nothing of memory."""
    return replace(arch, model_id="", gated=False, source="", published_parameters=0)


def same(one: MemoryRequest, other: MemoryRequest) -> bool:
    """Whether both ask for the same; a file limits images where an engine started bare takes as many as it
    likes."""
    return replace(one, arch=known_of(one.arch)) == replace(
        other, arch=known_of(other.arch), image_limit=one.image_limit
    )


@PROFILE
@given(questions())
def test_a_plan_and_an_estimate_agree(question: tuple[str, str, int, dict[str, Any]]) -> None:
    planned, asked = served(file_of(*question)), estimated(*question)

    if isinstance(planned, Serving):
        event("fits")
        assert asked.fits
        assert asked.ledger is not None
        assert same(planned.ledger.request, asked.ledger.request)
        if not planned.arch.multimodal:
            assert planned.ledger.kv_cache == asked.ledger.kv_cache
        return
    codes = {finding.code for finding in planned}
    assume(codes <= OF_MEMORY)
    event(f"refused for {', '.join(sorted(codes))}")
    assert {finding.code for finding in asked.findings if finding.level is Severity.ERROR} == codes


@settings(PROFILE, max_examples=60)
@given(questions())
def test_a_size_is_what_a_plan_of_it_would_be(question: tuple[str, str, int, dict[str, Any]]) -> None:
    repository, kind, count, stated = question
    planned = served(file_of(repository, kind, count, stated))
    sized = {
        (size.serving.accelerator.name, size.serving.count): size.serving
        for size in size_model(file_of(repository, kind, count, stated), Prices(REGION)).sizes
    }

    if (kind, count) in sized:
        assert isinstance(planned, Serving)
        assert sized[kind, count].ledger == planned.ledger
