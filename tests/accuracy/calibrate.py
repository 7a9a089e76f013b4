"""Calibration of the memory table's constants: the value that each log implies, and their median.

A constant belongs to the versions that share a mechanism (an entry of engines/vllm/memory.yaml). Each log
that prints a term implies one value of its constant; the constant is their median. Leaving a model family out
gives the constants for the held-out error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import median

from modelyard.engines import MemoryFacts
from modelyard.engines.memory import regime
from modelyard.memory.activation import peak_activation
from modelyard.memory.estimate import estimate
from modelyard.memory.ledger import MemoryLedger
from modelyard.spec.estimate import EstimateRequest
from tests.accuracy.measurements import Measurement

_GIB = 1 << 30
_DOMINATES = 1.15  # a term counts as the peak when it is this many times the next


@dataclass(frozen=True)
class Constant:
    """A field of MemoryFacts, the key of the table that sets it, and what one log implies for it, or None."""

    field: str
    key: str
    implied: Callable[[Measurement, MemoryLedger], float | None]


def _sampler(row: Measurement, ledger: MemoryLedger) -> float | None:
    """Bytes an entry, where the sampler is the peak: what the log prints less what lies beside it."""
    facts, request = ledger.request.facts, ledger.request
    guessed = "maxNumSeqs" not in row.question and facts.batch.whole_prompts
    of_images = facts.images_limit_rows and request.arch.vision is not None
    if row.activation is None or guessed or of_images or facts.reserved != 1.0:
        return None
    forward = _activation(ledger, replace(facts, sampler_bytes=0.0, fixed_gib=0.0))
    if ledger.activation.in_gib < _DOMINATES * forward:
        return None
    entries = min(request.max_num_seqs, request.max_num_batched_tokens) * request.arch.vocab / _GIB
    beside = ledger.activation.in_gib - entries * facts.sampler_bytes
    return (row.activation - max(beside, 0.0)) / entries


def _activation(ledger: MemoryLedger, facts: MemoryFacts) -> float:
    request = ledger.request
    return peak_activation(
        request.arch,
        facts,
        request.split,
        batched_tokens=request.max_num_batched_tokens,
        sequences=request.max_num_seqs,
        image_limit=request.image_limit,
        largest_image=request.largest_image,
        video_limit=request.video_limit,
    ).in_gib


def _alone(row: Measurement, ledger: MemoryLedger) -> float | None:
    return row.non_torch if ledger.request.split.ranks == 1 else None


def _pcie(row: Measurement, ledger: MemoryLedger) -> float | None:
    request = ledger.request
    linked = request.accelerator.has("nvlink") or request.accelerator.compute_capability is None
    return row.non_torch if request.split.tensor > 1 and not linked else None


def _hopper_each(row: Measurement, ledger: MemoryLedger) -> float | None:
    """What each further rank adds; the base stays the table's."""
    request, facts = ledger.request, ledger.request.facts
    large = request.accelerator.has("large-collectives")
    if row.non_torch is None or request.split.tensor == 1 or not large:
        return None
    if not request.accelerator.has("nvlink") or facts.fused_gib:
        return None
    return (row.non_torch - facts.ranks_hopper_gib) / (request.split.tensor - 1)


def _fused(row: Measurement, ledger: MemoryLedger) -> float | None:
    request, facts = ledger.request, ledger.request.facts
    large = request.accelerator.has("large-collectives")
    if row.non_torch is None or request.split.tensor == 1 or not large:
        return None
    if not facts.fused_gib or not request.accelerator.has("nvlink"):
        return None
    return row.non_torch - facts.ranks_hopper_gib - facts.fused_each_gib * (request.split.tensor - 1)


def _graphs(row: Measurement, ledger: MemoryLedger) -> float | None:
    """The base: what was captured less what layers, ranks and experts add."""
    facts = ledger.request.facts
    if (
        row.graphs is None
        or row.graphs <= 0
        or ledger.request.enforce_eager
        or not ledger.cuda_graphs.in_bytes
    ):
        return None
    return facts.graphs_base_gib + row.graphs - ledger.cuda_graphs.in_gib


CONSTANTS = (
    Constant("sampler_bytes", "samplerBytes", _sampler),
    Constant("non_torch_gib", "nonTorchGib", _alone),
    Constant("ranks_pcie_gib", "ranksGib", _pcie),
    Constant("ranks_hopper_each_gib", "ranksGib", _hopper_each),
    Constant("fused_gib", "ranksGib", _fused),
    Constant("graphs_base_gib", "graphs", _graphs),
)

Calibration = dict[tuple[str, str], float]
"""Constants by (field, version since which the mechanism holds)."""


def implied_values(rows: Iterable[Measurement]) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """What each log that is not held out implies, with its family, by (field, since)."""
    found: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
    for row in rows:
        if row.held_out:
            continue
        said = estimate(EstimateRequest.model_validate(row.question))
        if said.ledger is None:
            continue
        for constant in CONSTANTS:
            value = constant.implied(row, said.ledger)
            if value is not None:
                since = regime("vllm", said.ledger.request.facts.version, constant.key)
                found[constant.field, since].append((row.family, value))
    return found


def calibration(rows: Iterable[Measurement], *, without: str | None = None) -> Calibration:
    """Medians over the logs, those of the family `without` left out. A constant that no log implies is not
    among them."""
    return {
        key: median(kept)
        for key, values in implied_values(rows).items()
        if (kept := [value for family, value in values if family != without])
    }


def adjusted(found: Calibration) -> Callable[[MemoryFacts], MemoryFacts]:
    """Facts with the constants of `found` in the versions that they belong to."""

    def adjust(facts: MemoryFacts) -> MemoryFacts:
        changes = {
            constant.field: found[key]
            for constant in CONSTANTS
            if (key := (constant.field, regime("vllm", facts.version, constant.key))) in found
        }
        return replace(facts, **changes)  # type: ignore[arg-type]

    return adjust
