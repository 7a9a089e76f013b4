"""How one model runs on given accelerators: engine, parallelism, length and batch, or the reasons why it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelyard.engines import Release, newest_release, release
from modelyard.engines.release import EngineName
from modelyard.findings import Finding
from modelyard.hardware import Accelerator, Memory, accelerators, types_with
from modelyard.planning.architecture import Architecture, architectures
from modelyard.planning.capability import BFLOAT16, engine_findings, number_format_findings
from modelyard.planning.kv_cache import longest_length
from modelyard.planning.memory import MemoryLedger, MemoryRequest, memory_ledger
from modelyard.planning.parallelism import allowed_splits, split_problem
from modelyard.spec.model import Model

_LEAST_LENGTH = 2048


@dataclass(frozen=True)
class Serving:
    """A way to run `model` that fits. `tensor_parallel` counts logical cores, `count` accelerators of a replica."""

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


def known_architecture(model: Model) -> Architecture | Finding:
    """Architecture facts of `model`, from the table."""
    wanted = model.model.architecture or model.model.repository
    if (arch := architectures().get(wanted)) is not None:
        return arch
    field = ("model", "architecture") if model.model.architecture else ("model",)
    return Finding(
        "MODEL001",
        f"no architecture facts for '{wanted}'",
        "set model.architecture to a repository with the same config.json from `modelyard catalog models`",
        subject=model.name,
        field=field,
    )


def engine_for(model: Model, accelerator: Accelerator) -> Release | Finding:
    """The engine release that serves `model` on `accelerator`."""
    name: EngineName
    if model.engine.name == "auto":
        name = "vllm" if accelerator.vendor == "nvidia" else "vllm-neuron"
    else:
        name = model.engine.name
    wrong_vendor = (name == "vllm") != (accelerator.vendor == "nvidia")
    if wrong_vendor or (name == "vllm-neuron" and accelerator.name != "trn2"):
        return Finding(
            "ENG001",
            f"engine {name} does not run on {accelerator.name}",
            "vllm runs on NVIDIA GPUs, vllm-neuron on trn2",
            subject=model.name,
            field=("engine", "name") if model.engine.name != "auto" else ("accelerator",),
        )
    if (found := release(name, model.engine.version)) is None:
        return Finding(
            "ENG001",
            f"no facts about {name} {model.engine.version}",
            f"use {newest_release(name).version}, or leave engine.version out",
            subject=model.name,
            field=("engine", "version"),
        )
    return found


def plan_serving(model: Model, accelerator: Accelerator, count: int) -> Serving | list[Finding]:
    """Settings under which `model` fits on `count` of `accelerator`; all reasons together when it does not."""
    arch = known_architecture(model)
    engine = engine_for(model, accelerator)
    problems = [found for found in (arch, engine) if isinstance(found, Finding)]
    if isinstance(arch, Finding) or isinstance(engine, Finding):
        return problems
    problems += engine_findings(model, arch, accelerator, engine)
    cores = count * accelerator.cores
    if reason := split_problem(arch, cores):
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
    return _fit(model, arch, accelerator, count, engine)


def _fit(
    model: Model, arch: Architecture, accelerator: Accelerator, count: int, engine: Release
) -> Serving | list[Finding]:
    settings = model.engine
    request = _memory_request(model, arch, accelerator, count, engine)
    ledger = memory_ledger(request)
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
    longest = _longest(ledger, limit, settings.concurrency)
    wanted = settings.max_model_len or _default_length(longest, limit)
    if ledger.kv_cache <= Memory(0) or wanted < 256:
        return [_weights_do_not_fit(model, ledger, count)]
    if wanted > longest:
        return [_context_does_not_fit(model, ledger, wanted, longest, count)]
    cc = accelerator.compute_capability
    dtype = "float16" if settings.dtype == "auto" and cc is not None and cc < BFLOAT16 else settings.dtype
    return Serving(
        model,
        arch,
        accelerator,
        count,
        engine,
        request.tensor_parallel,
        dtype,
        wanted,
        request.max_num_seqs,
        request.max_num_batched_tokens,
        ledger,
    )


def _memory_request(
    model: Model, arch: Architecture, accelerator: Accelerator, count: int, engine: Release
) -> MemoryRequest:
    settings = model.engine
    batched, seqs = engine.batch_defaults(accelerator)
    batched = settings.max_num_batched_tokens or batched
    seqs = min(settings.max_num_seqs or seqs, batched)
    return MemoryRequest(
        arch=arch,
        accelerator=accelerator,
        release=engine,
        tensor_parallel=count * accelerator.cores,
        gpu_memory_utilization=settings.gpu_memory_utilization,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        kv_cache_dtype=settings.kv_cache_dtype,
        enforce_eager=settings.enforce_eager,
        adapter_rank=max((adapter.rank for adapter in model.adapters), default=0),
        adapter_count=len(model.adapters),
    )


def _longest(ledger: MemoryLedger, limit: int, concurrency: int) -> int:
    share = ledger.kv_cache * (1 / concurrency)
    return longest_length(ledger.kv_need, share, limit, ledger.request.release.memory.block_size)


def _default_length(longest: int, limit: int) -> int:
    """The model's own limit if it fits, else the largest power of two that does: a number people recognise."""
    if longest >= limit:
        return limit
    return 1 << (longest.bit_length() - 1) if longest >= _LEAST_LENGTH else longest


def _weights_do_not_fit(model: Model, ledger: MemoryLedger, count: int) -> Finding:
    spent = ledger.budget - ledger.kv_cache
    accelerator = ledger.request.accelerator
    return Finding(
        "FIT001",
        f"weights {ledger.weights}, activations {ledger.activation} and overhead "
        f"{ledger.non_torch + ledger.cuda_graphs + ledger.adapters} need {spent} of {ledger.budget} on "
        f"{accelerator.name}:{count}",
        "use "
        + " or ".join(
            _ways_out(model, ledger, count, _LEAST_LENGTH) or ["a smaller or quantized checkpoint"]
        ),
        subject=model.name,
        field=("accelerator",),
    )


def _context_does_not_fit(
    model: Model, ledger: MemoryLedger, wanted: int, longest: int, count: int
) -> Finding:
    settings = model.engine
    need = ledger.kv_need(wanted) * settings.concurrency
    times = f" for {settings.concurrency} requests" if settings.concurrency > 1 else ""
    ways = [f"a length of {longest}"] if longest >= 256 else []
    if settings.kv_cache_dtype == "auto" and ledger.request.release.engine == "vllm":
        half = memory_ledger(replace(ledger.request, kv_cache_dtype="fp8"))
        reach = _longest(half, ledger.request.arch.max_position, settings.concurrency)
        ways.append(f"kvCacheDtype fp8 (up to {reach})" if reach < wanted else "kvCacheDtype fp8")
    ways += _ways_out(model, ledger, count, wanted)
    return Finding(
        "KV001",
        f"max length {wanted} needs {need} of KV cache{times}, {ledger.kv_cache} left on "
        f"{ledger.request.accelerator.name}:{count} after {ledger.weights} of weights",
        f"use {', '.join(ways[:-1])} or {ways[-1]}" if len(ways) > 1 else f"use {ways[0]}",
        subject=model.name,
        field=("engine", "maxModelLen"),
    )


def _ways_out(model: Model, ledger: MemoryLedger, count: int, wanted: int) -> list[str]:
    """More of the same accelerator, and the smallest other one, on which `wanted` tokens fit."""
    here = ledger.request.accelerator
    others = sorted((a for a in accelerators().values() if a.vendor == here.vendor), key=lambda a: a.usable)
    more = [(here, n) for n in (2, 4, 8, 16) if n > count]
    larger = [(a, n) for a in others if a.usable > here.usable for n in (1, 2, 4, 8)]
    ways = []
    for options in (more, larger):
        found = next((f"{a.name}:{n}" for a, n in options if _would_fit(model, ledger, a, n, wanted)), None)
        ways += [found] if found else []
    return ways


def _would_fit(model: Model, ledger: MemoryLedger, accelerator: Accelerator, count: int, wanted: int) -> bool:
    arch = ledger.request.arch
    sold = any(t.accelerator_count >= count for t in types_with(accelerator.name))
    engine = engine_for(model, accelerator)
    if not sold or split_problem(arch, count * accelerator.cores) or isinstance(engine, Finding):
        return False
    if number_format_findings(model, arch, accelerator, engine):
        return False
    other = memory_ledger(_memory_request(model, arch, accelerator, count, engine))
    return other.kv_cache > Memory(0) and other.concurrency(wanted) >= model.engine.concurrency
