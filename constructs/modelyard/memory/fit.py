"""Whether the requested length and batch fit a ledger, and fixes if they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from modelyard.findings import Finding, Severity
from modelyard.hardware import Memory
from modelyard.memory.ledger import MemoryLedger
from modelyard.memory.places import Places
from modelyard.spec.engine import LEAST_MAX_MODEL_LEN

_LEAST_UTILIZATION = 0.3


@dataclass(frozen=True)
class Fit:
    """A ledger, the requested length, and the longest length that fits, in tokens."""

    ledger: MemoryLedger
    wanted: int
    longest: int


def longest_length(ledger_at: Callable[[int], MemoryLedger], limit: int, *, at_once: int = 1) -> int:
    """The longest length up to `limit`, in whole blocks, at which `at_once` requests fit; 0 if none does.

    `ledger_at`: the ledger of an engine started with a given length, since some settings depend on it.
    """

    def fits(length: int) -> bool:
        return ledger_at(length).holds(length, at_once)

    if fits(limit):
        return limit
    block = ledger_at(limit).layout.block_size
    low, high = 0, (limit - 1) // block
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * block) else (low, middle - 1)
    return low * block


def weights_beyond_budget(ledger: MemoryLedger) -> str:
    """Why nothing is left for the KV cache, for the message of FIT001."""
    overhead = ledger.non_torch + ledger.graphs_in_budget + ledger.adapters
    spent = ledger.budget - ledger.kv_cache
    return (
        f"weights {ledger.weights}, activations {ledger.activation} and overhead {overhead} "
        f"need {spent} of {ledger.budget}"
    )


def fit_findings(fit: Fit, places: Places) -> Iterator[Finding]:
    """Errors if the engine would not start; warnings if it starts but memory is tight or uncertain."""
    yield from batch_findings(fit, places)
    yield from _room_findings(fit, places)
    yield from utilization_findings(fit, places)
    yield from fit_warnings(fit, places)


def batch_findings(fit: Fit, places: Places) -> Iterator[Finding]:
    """Stated batch limits that contradict each other; defaults never do."""
    yield from text_findings(fit, places)
    request = fit.ledger.request
    tokens, seqs = request.max_num_batched_tokens, request.max_num_seqs
    if tokens < seqs:
        yield Finding(
            "BATCH001",
            f"maxNumBatchedTokens {tokens} is below maxNumSeqs {seqs}",
            f"use maxNumSeqs {tokens} or less, or maxNumBatchedTokens {seqs} or more",
            subject=places.subject,
            field=places.max_num_seqs,
        )


def text_findings(fit: Fit, places: Places) -> Iterator[Finding]:
    """An encoder's text that does not fit into a batch: it is read in one pass.

    Without chunked prefill, vLLM's SchedulerConfig refuses a length above the batch; llama-server refuses
    each text above its physical batch.
    """
    request = fit.ledger.request
    tokens = request.max_num_batched_tokens
    if request.arch.encoder and tokens < fit.wanted:
        yield Finding(
            "BATCH001",
            f"maxNumBatchedTokens {tokens} is below maxModelLen {fit.wanted}, and an encoder reads a text at once",
            f"use maxNumBatchedTokens {fit.wanted} or more, or maxModelLen {tokens} or less",
            subject=places.subject,
            field=places.max_num_batched_tokens,
        )


def utilization_findings(fit: Fit, places: Places) -> Iterator[Finding]:
    """A utilization that leaves no room for memory outside the budget."""
    ledger, request = fit.ledger, fit.ledger.request
    facts = request.facts
    beyond = Memory.gib(facts.context_gib) + (ledger.cuda_graphs - ledger.graphs_in_budget)
    if facts.kv_cap_fraction is None and ledger.outside < beyond:
        yield Finding(
            "UTIL001",
            f"utilization {request.gpu_memory_utilization:g} leaves {ledger.outside} outside the budget; CUDA context, "
            f"collectives and graphs take about {beyond}",
            _lower_utilization(ledger.total, beyond),
            subject=places.subject,
            field=places.gpu_memory_utilization,
        )


def fit_warnings(fit: Fit, places: Places) -> Iterator[Finding]:
    """Settings that fit but are uncertain or tight."""
    arch = fit.ledger.request.arch
    if fit.wanted > arch.max_position:
        yield Finding(
            "LEN001",
            f"maxModelLen {fit.wanted} exceeds the {arch.max_position} tokens of the model",
            f"use {arch.max_position} or less",
            subject=places.subject,
            field=places.max_model_len,
            severity=Severity.WARNING,  # rope scaling or VLLM_ALLOW_LONG_MAX_MODEL_LEN may allow it
        )
    if not arch.tested:
        yield Finding(
            "MODEL004",
            f"no measurement of {arch.architecture} was held against the memory model",
            "compare the first start-up's log with this ledger",
            subject=places.subject,
            field=places.model,
        )
    tower = arch.vision
    if (
        tower
        and not tower.cross_attention
        and fit.wanted < tower.tokens
        and fit.ledger.request.image_limit != 0
    ):
        yield Finding(
            "IMG001",
            f"one image takes up to {tower.tokens} tokens, maxModelLen is {fit.wanted}: larger images are refused",
            f"use maxModelLen {tower.tokens} or more, or limit image sizes with mm-processor-kwargs",
            subject=places.subject,
            field=places.max_model_len,
        )


def _room_findings(fit: Fit, places: Places) -> Iterator[Finding]:
    """Weights or a length that do not fit."""
    ledger = fit.ledger
    if ledger.kv_cache <= Memory(0):
        yield Finding(
            "FIT001",
            weights_beyond_budget(ledger),
            "use more or larger accelerators, or a smaller or quantized checkpoint",
            subject=places.subject,
            field=places.accelerator,
        )
    elif not ledger.holds(fit.wanted):
        ways = [f"a length of {fit.longest}"] if fit.longest >= LEAST_MAX_MODEL_LEN else []
        yield Finding(
            "KV001",
            f"max length {fit.wanted} needs {ledger.kv_need(fit.wanted)} of KV cache, {ledger.kv_cache} left",
            f"use {' or '.join([*ways, 'fp8 KV cache', 'more or larger accelerators'])}",
            subject=places.subject,
            field=places.max_model_len,
        )


def _lower_utilization(total: Memory, beyond: Memory) -> str:
    share = int(100 * (1 - beyond.in_bytes / total.in_bytes)) / 100
    return f"use {share:g} or less" if share >= _LEAST_UTILIZATION else "use a larger accelerator"
