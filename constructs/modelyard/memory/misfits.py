"""Why a model does not fit, and fixes: shorter, another format, more accelerators, or another accelerator
with its price."""

from __future__ import annotations

from dataclasses import replace

from modelyard.engines import engine
from modelyard.findings import Finding
from modelyard.hardware import Accelerator, Prices, accelerators, types_with
from modelyard.memory.fit import Fit, longest_length, utilization_findings, weights_beyond_budget
from modelyard.memory.ledger import MemoryLedger, memory_ledger
from modelyard.memory.llama_server import cpu_ledger, longest_context, offload_ledger
from modelyard.memory.number_formats import file_format_findings
from modelyard.memory.parallelism import Parallelism, split_problem
from modelyard.memory.places import Places
from modelyard.memory.release_choice import engine_for
from modelyard.memory.requests import Run
from modelyard.spec.engine import LEAST_MAX_MODEL_LEN
from modelyard.spec.model import Model

LEAST_LENGTH = 2048
"""Minimum useful length, in tokens."""

# Up to the maximum that a model file allows.
_HIGHER_UTILIZATIONS = (0.9, 0.92, 0.95)


def weights_do_not_fit(model: Model, ledger: MemoryLedger, count: int, prices: Prices | None) -> Finding:
    return Finding(
        "FIT001",
        f"{weights_beyond_budget(ledger)} on {ledger.request.accelerator.name}:{count}",
        "use "
        + " or ".join(
            _ways_out(model, ledger, count, LEAST_LENGTH, prices) or ["a smaller or quantized checkpoint"]
        ),
        subject=model.name,
        field=("accelerator",),
    )


def context_does_not_fit(
    model: Model, ledger: MemoryLedger, wanted: int, longest: int, count: int, prices: Prices | None
) -> Finding:
    settings = model.engine
    need = ledger.kv_need(wanted) * settings.concurrency
    times = f" for {settings.concurrency} requests" if settings.concurrency > 1 else ""
    ways = [f"a length of {longest}"] if longest >= LEAST_MAX_MODEL_LEN else []
    whole = engine(ledger.request.facts.engine).fp8_cache
    if ledger.request.kv_cache_dtype == "auto" and whole:
        half = memory_ledger(replace(ledger.request, kv_cache_dtype="fp8"))
        reach = longest_length(lambda _: half, ledger.request.arch.max_position, at_once=settings.concurrency)
        ways.append(f"kvCacheDtype fp8 (up to {reach})" if reach < wanted else "kvCacheDtype fp8")
    ways += _ways_out(model, ledger, count, wanted, prices)
    return Finding(
        "KV001",
        f"max length {wanted} needs {need} of KV cache{times}, {ledger.kv_cache} left on "
        f"{ledger.request.accelerator.name}:{count} after {ledger.weights} of weights",
        f"use {', '.join(ways[:-1])} or {ways[-1]}" if len(ways) > 1 else f"use {ways[0]}",
        subject=model.name,
        field=("engine", "maxModelLen"),
    )


def _ways_out(
    model: Model, ledger: MemoryLedger, count: int, wanted: int, prices: Prices | None
) -> list[str]:
    """More of the same accelerator, and the smallest other accelerator on which `wanted` tokens fit, with
    prices."""
    here = ledger.request.accelerator
    others = sorted((a for a in accelerators().values() if a.vendor == here.vendor), key=lambda a: a.usable)
    more = [(here, n) for n in (2, 4, 8, 16) if n > count]
    larger = [(a, n) for a in others if a.usable > here.usable for n in (1, 2, 4, 8)]
    split = engine(ledger.request.facts.engine).memory == "split"
    ways = _utilization(model, ledger, wanted) if split else []
    for options in (more, larger):
        found = next(
            (_offer(a, n, prices) for a, n in options if _would_fit(model, ledger, a, n, wanted)), None
        )
        ways += [found] if found else []
    return ways


def _utilization(model: Model, ledger: MemoryLedger, wanted: int) -> list[str]:
    """A higher utilization, if it suffices and leaves room outside the budget."""
    for share in _HIGHER_UTILIZATIONS:
        if share <= ledger.request.gpu_memory_utilization:
            continue
        other = memory_ledger(replace(ledger.request, gpu_memory_utilization=share))
        if other.holds(wanted, model.engine.concurrency):
            crowded = any(utilization_findings(Fit(other, wanted, wanted), Places.in_file(model)))
            return [] if crowded else [f"gpuMemoryUtilization {share:g}"]
    return []


def _offer(accelerator: Accelerator, count: int, prices: Prices | None) -> str:
    """`h100:1`, and the cheapest instance type with that many."""
    name = f"{accelerator.name}:{count}"
    priced = [
        (price, t.name)
        for t in types_with(accelerator.name)
        if prices and t.accelerator_count >= count and (price := prices.of(t).usd_per_hour) is not None
    ]
    if not priced:
        return name
    price, cheapest = min(priced)
    return f"{name} ({cheapest}, ${price:.2f}/h)"


def _would_fit(model: Model, ledger: MemoryLedger, accelerator: Accelerator, count: int, wanted: int) -> bool:
    arch = ledger.request.arch
    sold = any(t.accelerator_count >= count for t in types_with(accelerator.name))
    release = engine_for(model, accelerator)
    if not sold or isinstance(release, Finding):
        return False
    by_layers = engine(release.engine).memory == "layers"
    if not by_layers and split_problem(arch, Parallelism(count * accelerator.cores)):
        return False
    if file_format_findings(model, arch, accelerator, release):
        return False
    split = Parallelism(pipeline=count) if by_layers else Parallelism(count * accelerator.cores)
    asked = Run.of_file(model, arch, accelerator, split, release).at(wanted)
    if by_layers:
        whole = cpu_ledger(asked) if accelerator.vendor == "cpu" else offload_ledger(asked, -1)
        return longest_context(whole, wanted) >= wanted
    return memory_ledger(asked).holds(wanted, model.engine.concurrency)
