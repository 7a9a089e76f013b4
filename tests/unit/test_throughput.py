"""The roofline is above every measurement, and scales with hardware."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import Format, Quantization, architectures
from modelyard.checkpoints.quantization import FormatName
from modelyard.hardware import accelerators
from modelyard.memory.active_weights import ActiveWeights, active_weights, share_of_experts
from modelyard.memory.serving import Serving
from modelyard.memory.throughput import (
    RequestLengths,
    Throughput,
    bound,
    matrix_tflops,
    roofline,
    token_cost,
)
from tests.unit.given import a_model, served


def a_serving(uri: str = "Qwen/Qwen3-32B-FP8", accelerator: str = "l40s", **changes: object) -> Serving:
    found = served(a_model(model=f"hf://{uri}", accelerator=accelerator, **changes))
    assert isinstance(found, Serving), found
    return found


@pytest.mark.parametrize(
    ("uri", "accelerator", "published"),
    [
        # "Complete vLLM guide", throughput table: the upper end of each range, in tokens a second
        ("meta-llama/Llama-3.1-8B-Instruct", "h100", 2500),
        ("meta-llama/Llama-3.1-70B-Instruct", "a100-80gb:4", 600),
    ],
)
def test_the_bound_lies_above_what_was_published(uri: str, accelerator: str, published: int) -> None:
    estimate = roofline(a_serving(uri, accelerator, engine={"maxModelLen": 4096}))

    assert estimate.is_upper_bound
    assert estimate.output_per_second > published


@pytest.mark.parametrize(
    ("uri", "accelerator", "modelled"),
    [
        # AIConfigurator 0.12.0 (kernels measured with vLLM 0.24.0), 1024 tokens in and 256 out, the batch of
        # the bound
        ("meta-llama/Llama-3.1-8B-Instruct", "h100", 5946),
        ("meta-llama/Llama-3.1-70B-Instruct", "a100-80gb:4", 1086),
        ("meta-llama/Llama-3.1-70B-Instruct", "h100:4", 2537),
        ("Qwen/Qwen3-32B-FP8", "l40s", 148),
        ("Qwen/Qwen3-32B-FP8", "b200", 3311),
        ("Qwen/Qwen3-30B-A3B", "h100:2", 11892),
        ("openai/gpt-oss-120b", "h100", 2541),
        ("Qwen/Qwen3-8B", "rtx-pro-6000", 2946),
    ],
)
def test_measured_kernels_reach_a_good_part_of_the_bound_and_never_all_of_it(
    uri: str, accelerator: str, modelled: int
) -> None:
    estimate = roofline(a_serving(uri, accelerator, engine={"maxModelLen": 4096}))

    assert 0.15 < modelled / estimate.output_per_second < 0.75


def test_a_small_model_on_an_a100_stays_above_what_was_published() -> None:
    """Gemma 3 4B on an A100: 3,000+ tokens a second ("Complete vLLM guide"), all 4.3 billion parameters taken
    as active."""
    weights = ActiveWeights(parameters=4.3e9, output_parameters=0.67e9, always_bytes=8.6e9)

    estimate = bound(
        weights,
        RequestLengths(),
        batch=256,
        kv_bytes_per_token=139264,
        bytes_per_second=1.555e12,
        flops=312e12,
    )

    assert estimate.output_per_second > 3000


def test_the_bound_says_what_it_is_and_for_which_requests() -> None:
    estimate = roofline(a_serving())

    assert estimate.source == "roofline"
    assert "upper bound" in estimate.statement
    assert estimate.workload == RequestLengths(1024, 256)
    assert 1 <= estimate.batch <= a_serving().max_num_seqs
    assert estimate.total_per_second == pytest.approx(5 * estimate.output_per_second)


def test_requests_are_no_longer_than_the_model_allows() -> None:
    estimate = roofline(a_serving(engine={"maxModelLen": 512}))

    assert estimate.workload == RequestLengths(410, 102)


def test_one_request_alone_reads_the_weights_for_every_token() -> None:
    weights = ActiveWeights(parameters=8e9, output_parameters=0, always_bytes=16e9)

    estimate = bound(
        weights, RequestLengths(1, 1000), batch=1, kv_bytes_per_token=0, bytes_per_second=1.6e12, flops=1e15
    )

    assert estimate.output_per_second == pytest.approx(100)
    assert estimate.limited_by == "memory bandwidth"


def test_long_prompts_are_limited_by_multiplications() -> None:
    weights = ActiveWeights(parameters=8e9, output_parameters=0, always_bytes=16e9)

    estimate = bound(
        weights,
        RequestLengths(100_000, 1),
        batch=8,
        kv_bytes_per_token=0,
        bytes_per_second=1e12,
        flops=1.6e15,
    )

    assert estimate.limited_by == "compute"
    assert estimate.prefill_per_second == pytest.approx(1e5)
    assert estimate.output_per_second == pytest.approx(1, rel=0.01)


def test_draft_tokens_share_a_steps_reading() -> None:
    plain = roofline(a_serving())
    drafting = roofline(a_serving(speculativeDecoding={"method": "ngram", "tokens": 3}))

    assert plain.decode_per_second is not None
    assert drafting.decode_per_second == pytest.approx(
        4 * plain.decode_per_second, rel=0.1
    )  # drafts take some of the cache


@pytest.mark.parametrize(("batch", "share"), [(0, 0), (1, 4 / 128), (2, 1 - (1 - 4 / 128) ** 2), (10_000, 1)])
def test_a_batch_touches_the_experts_that_its_tokens_choose(batch: int, share: float) -> None:
    assert share_of_experts(128, 4, batch) == pytest.approx(share)


def test_a_mixture_of_experts_multiplies_only_what_a_token_takes() -> None:
    """openai/gpt-oss-120b is published with 5.1 billion active parameters of 117, Qwen3-30B-A3B with 3.3 of
    30.5."""
    gpt_oss = active_weights(architectures()["openai/gpt-oss-120b"])
    qwen = active_weights(architectures()["Qwen/Qwen3-30B-A3B"])

    assert gpt_oss.parameters == pytest.approx(5.1e9, rel=0.03)
    assert qwen.parameters + qwen.output_parameters == pytest.approx(3.3e9, rel=0.03)


@pytest.mark.parametrize("model_id", sorted(architectures()))
def test_no_step_reads_more_than_the_checkpoint(model_id: str) -> None:
    arch = architectures()[model_id]
    weights = active_weights(arch)

    assert 0 < weights.output_parameters < weights.parameters
    assert weights.always_bytes > 0
    assert weights.step_bytes(1) <= weights.step_bytes(4096) <= weights.always_bytes + weights.expert_bytes


@pytest.mark.parametrize(
    ("accelerator", "stored", "tflops"),
    [
        ("l40s", None, 362.05),
        ("l40s", "fp8", 733),
        ("a100", "fp8", 312),  # no FP8 units: weights are unpacked
        ("a100", "int8", 624),
        ("h100", "int4", 989.5),
        ("h100", "mxfp4", 989.5),
        ("b200", "mxfp4", 4500),
        ("b200", "nvfp4", 9000),
        ("trn2", None, 667),
    ],
)
def test_a_format_is_multiplied_as_fast_as_the_hardware_can(
    accelerator: str, stored: FormatName | None, tflops: float
) -> None:
    quantization = Quantization("any", 8, Format(stored)) if stored else None

    assert matrix_tflops(accelerators()[accelerator], quantization) == tflops


@pytest.mark.parametrize("name", sorted(accelerators()))
def test_every_accelerator_has_a_peak_with_its_source(name: str) -> None:
    accelerator = accelerators()[name]

    assert accelerator.peak_tflops["fp16"] > 0
    assert set(accelerator.peak_tflops) <= {"fp16", "fp8", "int8", "fp4"}
    assert accelerator.peak_source
    assert accelerator.compute_capability is None or ("fp8" in accelerator.peak_tflops) == (
        accelerator.compute_capability >= (8, 9)
    )


def test_tokens_cost_what_a_replica_costs_while_they_are_made() -> None:
    throughput = replace(roofline(a_serving()), output_per_second=1000.0)

    price = token_cost(throughput, 3.6)

    assert price is not None
    assert price.output == pytest.approx(1.0)
    assert price.blended == pytest.approx(0.2)
    assert token_cost(throughput, None) is None


weights = st.builds(
    lambda parameters, head, experts, per_token: ActiveWeights(
        parameters=parameters,
        output_parameters=parameters * head,
        always_bytes=2 * parameters,
        expert_bytes=10 * parameters if experts else 0,
        experts=experts,
        experts_per_token=min(per_token, experts),
    ),
    parameters=st.floats(1e8, 1e12),
    head=st.floats(0, 0.4),
    experts=st.sampled_from([0, 8, 128, 256]),
    per_token=st.integers(1, 8),
)
workloads = st.builds(RequestLengths, st.integers(1, 100_000), st.integers(1, 10_000))
hardware = st.fixed_dictionaries(
    {"bytes_per_second": st.floats(1e11, 1e14), "flops": st.floats(1e13, 1e17)},
)


def _bound(weights: ActiveWeights, work: RequestLengths, batch: int, machine: dict[str, float]) -> Throughput:
    return bound(
        weights,
        work,
        batch=batch,
        kv_bytes_per_token=1e5,
        bytes_per_second=machine["bytes_per_second"],
        flops=machine["flops"],
    )


@settings(max_examples=200, deadline=None)
@given(weights, workloads, st.integers(1, 1024), hardware, st.floats(1, 10), st.floats(1, 10))
def test_better_hardware_never_lowers_the_bound(
    weights: ActiveWeights,
    work: RequestLengths,
    batch: int,
    machine: dict[str, float],
    more_bandwidth: float,
    more_flops: float,
) -> None:
    better = {
        "bytes_per_second": machine["bytes_per_second"] * more_bandwidth,
        "flops": machine["flops"] * more_flops,
    }

    before, after = _bound(weights, work, batch, machine), _bound(weights, work, batch, better)

    assert after.output_per_second >= before.output_per_second * (1 - 1e-9)


@settings(max_examples=200, deadline=None)
@given(weights, workloads, st.integers(1, 1023), hardware)
def test_more_requests_at_once_never_lower_the_bound(
    weights: ActiveWeights, work: RequestLengths, batch: int, machine: dict[str, float]
) -> None:
    before, after = _bound(weights, work, batch, machine), _bound(weights, work, batch + 1, machine)

    assert after.output_per_second >= before.output_per_second * (1 - 1e-9)
    assert before.decode_per_second is not None
    assert before.output_per_second <= before.decode_per_second
