"""Throughput of a replica in tokens per second, as an upper bound of its hardware, and the cost of a million
tokens.

The roofline knows two limits of an accelerator: memory bandwidth and matrix throughput. Everything else that
takes time (attention, interconnect, kernels that reach 60 % of the peak, scheduling, sampling) counts as
free, so no measurement of the same workload exceeds the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from modelyard.checkpoints import Quantization
from modelyard.hardware import Accelerator
from modelyard.memory.active_weights import ActiveWeights, active_weights
from modelyard.memory.serving import Serving

ROOFLINE = (
    "upper bound by memory bandwidth and peak dense TFLOPS: attention, interconnect and kernel efficiency cost nothing in "
    "it; every prompt is new to the prefix cache, every draft token is accepted"
)
# Far beyond every sliding window, so that a further token adds KV cache only in full-attention layers.
_FAR = 1 << 22


@dataclass(frozen=True)
class RequestLengths:
    """Request lengths for which throughput is stated, in tokens."""

    input_tokens: int = 1024
    output_tokens: int = 256

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def mean_context(self) -> float:
        """Cached tokens of one request, averaged over its decode steps."""
        return self.input_tokens + self.output_tokens / 2

    def within(self, length: int) -> RequestLengths:
        """The same proportions, capped at `length` tokens."""
        if self.tokens <= length:
            return self
        output = max(1, length * self.output_tokens // self.tokens)
        return RequestLengths(length - output, output)


@dataclass(frozen=True)
class Throughput:
    """Tokens per second of one replica under a steady load of `workload`, with `batch` concurrent requests.

    `output_per_second`: generated tokens while prefill runs too. `decode_per_second` and
    `prefill_per_second`: if the replica did nothing else. `limited_by`: what limits the bound. None of these
    is a measurement of this deployment; `statement` says how they were obtained.
    """

    source: Literal["roofline", "aiconfigurator"]
    statement: str
    workload: RequestLengths
    batch: int
    output_per_second: float
    decode_per_second: float | None = None
    prefill_per_second: float | None = None
    limited_by: Literal["memory bandwidth", "compute"] | None = None

    @property
    def total_per_second(self) -> float:
        """Input and output tokens together."""
        return self.output_per_second * self.workload.tokens / self.workload.output_tokens

    @property
    def is_upper_bound(self) -> bool:
        return self.source == "roofline"


# Matrix units that can multiply weights of a format. Storage-only formats are unpacked to 16 bit; llama.cpp
# multiplies its types in INT8. Any other format may run on any unit, so that the result stays an upper bound.
_UNITS: Mapping[str, tuple[str, ...]] = {
    "16bit": ("fp16",),
    "fp8": ("fp16", "fp8"),
    "int8": ("fp16", "int8"),
    "int4": ("fp16",),
    "nf4": ("fp16",),
    "mxfp4": ("fp16",),
    "gguf": ("fp16", "int8"),
}


def matrix_tflops(accelerator: Accelerator, quantization: Quantization | None) -> float:
    """Peak TFLOPS of one accelerator in the fastest format that can multiply the checkpoint's weights."""
    peak = accelerator.peak_tflops
    formats = (
        {quantization.format.name, *(stored.name for _, stored in quantization.rules)}
        if quantization
        else {"16bit"}
    )
    units = {unit for stored in formats for unit in _UNITS.get(stored, tuple(peak))}
    if "mxfp4" in formats and "fp4" in peak:  # Blackwell multiplies MXFP4 with 8-bit activations
        units |= {"fp8", "int8"}
    return max(rate for unit, rate in peak.items() if unit in units | {"fp16"})


def roofline(
    serving: Serving, workload: RequestLengths | None = None, *, at_most: int | None = None
) -> Throughput:
    """The bound for one replica of `serving` with `at_most` concurrent requests; default: as many as fit.

    A steady batch takes at least as long as its memory traffic with all compute hidden, and at least as long
    as its compute with all traffic hidden. Traffic: one step per output token, each reading the weights once
    and the KV cache of every request; prefill adds no traffic.
    """
    work = (workload or _usual_workload(serving)).within(serving.max_model_len)
    drafts = serving.model.speculative_decoding
    held = steady_batch(serving, work)
    return bound(
        active_weights(serving.arch),
        work,
        batch=held if at_most is None else min(held, at_most),
        kv_bytes_per_token=kv_bytes_read_per_token(serving),
        bytes_per_second=serving.accelerator.bandwidth_gb_per_second * 1e9 * serving.count,
        flops=matrix_tflops(serving.accelerator, serving.arch.quantization) * 1e12 * serving.count,
        tokens_per_step=1 + drafts.tokens if drafts else 1,
    )


def _usual_workload(serving: Serving) -> RequestLengths:
    """A chat request, or a passage of text for embedding and reranking."""
    return (
        RequestLengths()
        if serving.model.task == "generate"
        else RequestLengths(input_tokens=512, output_tokens=1)
    )


def bound(
    weights: ActiveWeights,
    work: RequestLengths,
    *,
    batch: int,
    kv_bytes_per_token: float,
    bytes_per_second: float,
    flops: float,
    tokens_per_step: int = 1,
) -> Throughput:
    """The roofline of `batch` concurrent requests on hardware that reads `bytes_per_second` and computes
    `flops`.

    One multiplication and one addition per parameter and token: 2 × parameters FLOP. `tokens_per_step` above
    1 is the best case of speculative decoding: each step yields that many tokens per request, and no draft
    token is rejected.
    """
    step_bytes = weights.step_bytes(batch * tokens_per_step) + batch * work.mean_context * kv_bytes_per_token
    memory_seconds = work.output_tokens / tokens_per_step * step_bytes / bytes_per_second
    decode_seconds = batch * work.output_tokens * 2 * weights.parameters / flops
    prompt_parameters = weights.parameters - weights.output_parameters
    prefill_seconds = batch * work.input_tokens * 2 * prompt_parameters / flops
    compute_seconds = decode_seconds + prefill_seconds
    generated = batch * work.output_tokens
    return Throughput(
        source="roofline",
        statement=ROOFLINE,
        workload=work,
        batch=batch,
        output_per_second=generated / max(memory_seconds, compute_seconds),
        decode_per_second=generated / max(memory_seconds, decode_seconds),
        prefill_per_second=flops / (2 * prompt_parameters),
        limited_by="memory bandwidth" if memory_seconds >= compute_seconds else "compute",
    )


def steady_batch(serving: Serving, work: RequestLengths) -> int:
    """Concurrent requests: as many as the cache holds at their mean length, up to the engine's limit.

    A request's cache grows from prompt length to full length, so a steady mix averages the two.
    """
    if serving.arch.encoder:
        return min(serving.max_num_seqs, max(1, serving.max_num_batched_tokens // work.tokens))
    held = int(serving.ledger.concurrency(max(1, round(work.mean_context))))
    return max(1, min(serving.max_num_seqs, held) * serving.topology.split.data)


def kv_bytes_read_per_token(serving: Serving) -> float:
    """KV cache bytes that a step reads per token of context, all ranks together.

    Ranks with a replicated KV head each read their copy. Sliding windows are left out: they depend on the
    length, and leaving them out only raises the bound.
    """
    ledger = serving.ledger
    further = ledger.kv_need(2 * _FAR).in_bytes - ledger.kv_need(_FAR).in_bytes
    return further / _FAR * serving.tensor_parallel * serving.topology.split.pipeline


@dataclass(frozen=True)
class TokenCost:
    """US dollars per million tokens at full load, at minimum replicas and including idle accelerators; at
    half the load a token costs twice as much. `output`: all cost divided by generated tokens; `input`: by
    prompt tokens; `blended`: by all tokens."""

    output: float
    input: float
    blended: float


def token_cost(throughput: Throughput, usd_per_replica_hour: float | None) -> TokenCost | None:
    """Cost of a million tokens; None if the price of a replica is unknown."""
    if usd_per_replica_hour is None:
        return None
    per_second = usd_per_replica_hour / 3600 * 1e6
    output, total = throughput.output_per_second, throughput.total_per_second
    return TokenCost(per_second / output, per_second / (total - output), per_second / total)
