"""How one model runs on given accelerators: engine, parallelism, length and batch, or the reasons why it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.architecture import Architecture
from modelyard.engines import Release
from modelyard.findings import Finding
from modelyard.hardware import Accelerator, Memory, types_with
from modelyard.planning.activation import largest_image
from modelyard.planning.capability import BFLOAT16, engine_findings
from modelyard.planning.fit import Fit, longest_length
from modelyard.planning.memory import MemoryLedger, memory_ledger
from modelyard.planning.misfits import (
    LEAST_LENGTH,
    context_does_not_fit,
    settings_findings,
    weights_do_not_fit,
)
from modelyard.planning.parallelism import Parallelism, allowed_splits, split_problem
from modelyard.planning.requests import (
    engine_for,
    known_architecture,
    memory_request,
    with_sustainable_batch,
)
from modelyard.spec.model import LEAST_MAX_MODEL_LEN, Model


@dataclass(frozen=True)
class Serving:
    """A way to run `model` that fits. `tensor_parallel` counts logical cores, `count` accelerators of a replica. `longest`:
    the most tokens that `maxModelLen` may be."""

    model: Model
    arch: Architecture
    accelerator: Accelerator
    count: int
    release: Release
    tensor_parallel: int
    dtype: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    ledger: MemoryLedger
    longest: int


def plan_serving(
    model: Model,
    accelerator: Accelerator,
    count: int,
    region: str | None = None,
    known: Architecture | None = None,
) -> Serving | list[Finding]:
    """Settings under which `model` fits on `count` of `accelerator`; all reasons together when it does not, with prices
    of the ways out in `region`. `known` is the architecture of a model that the table does not have."""
    arch = known or known_architecture(model)
    engine = engine_for(model, accelerator)
    problems = [found for found in (arch, engine) if isinstance(found, Finding)]
    if isinstance(arch, Finding) or isinstance(engine, Finding):
        return problems
    problems += engine_findings(model, arch, accelerator, engine)
    cores = count * accelerator.cores
    if reason := split_problem(arch, Parallelism(cores)):
        fits = [size // accelerator.cores for size in allowed_splits(arch) if size % accelerator.cores == 0]
        sold = sorted({t.accelerator_count for t in types_with(accelerator.name)})
        useful = [str(size) for size in fits if sold and size <= sold[-1]]
        ranks = "" if accelerator.cores == 1 else f" ({cores} logical cores)"
        problems.append(
            Finding(
                "TP001",
                f"{arch.model_id} cannot be split over {count} {accelerator.name}{ranks}: {reason}",
                f"use a count of {', '.join(useful)}" if useful else "use another accelerator",
                subject=model.name,
                field=("accelerator",),
            )
        )
    if problems:
        return problems
    return _fit(model, arch, accelerator, count, engine, region)


def _fit(
    model: Model,
    arch: Architecture,
    accelerator: Accelerator,
    count: int,
    engine: Release,
    region: str | None,
) -> Serving | list[Finding]:
    settings = model.engine

    ledgers: dict[int | None, MemoryLedger] = {}

    def ledger_at(length: int) -> MemoryLedger:
        image = largest_image(arch, length)  # all that the length decides
        if image not in ledgers:
            asked = memory_request(model, arch, accelerator, count, engine, length)
            ledgers[image] = with_sustainable_batch(model, memory_ledger(asked))
        return ledgers[image]

    limit = arch.max_position
    if settings.max_model_len and settings.max_model_len > limit:
        return [
            Finding(
                "LEN001",
                f"maxModelLen {settings.max_model_len} exceeds the {limit} tokens of {arch.model_id}",
                f"use {limit} or less",
                subject=model.name,
                field=("engine", "maxModelLen"),
            )
        ]
    longest = longest_length(ledger_at, limit, at_once=settings.concurrency)
    wanted = settings.max_model_len or _default_length(longest, limit)
    ledger = ledger_at(max(wanted, 1))
    request = ledger.request
    if ledger.kv_cache <= Memory(0) or wanted < LEAST_MAX_MODEL_LEN:
        return [weights_do_not_fit(model, ledger, count, region)]
    if wanted > longest:
        return [context_does_not_fit(model, ledger, wanted, longest, count, region)]
    if problems := settings_findings(model, Fit(ledger, wanted, longest)):
        return problems
    cc = accelerator.compute_capability
    dtype = "float16" if settings.dtype == "auto" and cc is not None and cc < BFLOAT16 else settings.dtype
    return Serving(
        model,
        arch,
        accelerator,
        count,
        engine,
        request.split.tensor,
        dtype,
        wanted,
        request.max_num_seqs,
        request.max_num_batched_tokens,
        ledger,
        longest,
    )


def _default_length(longest: int, limit: int) -> int:
    """The model's own limit if it fits, else the largest power of two that does: a number people recognise."""
    if longest >= limit:
        return limit
    return 1 << (longest.bit_length() - 1) if longest >= LEAST_LENGTH else longest
