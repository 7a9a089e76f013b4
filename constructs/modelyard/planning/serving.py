"""How one model runs on given accelerators: engine, parallelism, length and batch, or the reasons why it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelyard.architecture import Architecture, UnreadableConfig, architectures, read_config
from modelyard.engines import Release, newest_release, release
from modelyard.engines.release import EngineName
from modelyard.findings import Finding, Severity
from modelyard.hardware import Accelerator, Memory, accelerators, types_with
from modelyard.planning.activation import largest_image
from modelyard.planning.capability import BFLOAT16, engine_findings, number_format_findings
from modelyard.planning.fit import Fit, fit_findings, longest_length
from modelyard.planning.memory import MemoryLedger, MemoryRequest, memory_ledger
from modelyard.planning.parallelism import Parallelism, allowed_splits, split_problem
from modelyard.spec.model import Model

_LEAST_LENGTH = 2048

LEAST_TOKENS_OF_A_SEQUENCE = 512
"""Prompt and answer of a short exchange. A full batch whose sequences cannot even hold that is preempted all the time."""

# Up to the most that a model file may say.
_HIGHER_UTILIZATIONS = (0.9, 0.92, 0.95)

# Sequences in a batch are a number that people recognise.
_STEP_OF_SEQUENCES = 8


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


def known_architecture(model: Model) -> Architecture | Finding:
    """Architecture facts of `model`: from the config.json that its file names, or from the table."""
    if model.model.config is not None:
        try:
            read = read_config(model.model.config, model_id=model.model.repository)
            return replace(read, source="the config.json that the model file names")
        except UnreadableConfig as problem:
            return Finding(
                "MODEL002",
                str(problem),
                "give the checkpoint's whole config.json",
                subject=model.name,
                field=("model", "config"),
            )
    wanted = model.model.architecture or model.model.repository
    if (arch := architectures().get(wanted)) is not None:
        return arch
    field = ("model", "architecture") if model.model.architecture else ("model",)
    return Finding(
        "MODEL001",
        f"no architecture facts for '{wanted}'",
        "set model.config to the path of its config.json, or model.architecture to a repository with the same one "
        "(`modelyard catalog models`)",
        subject=model.name,
        field=field,
    )


def images_per_prompt(model: Model, arch: Architecture) -> int | None:
    """Images that a prompt may hold: what the file says, else one; None for a model of text."""
    if not arch.multimodal:
        return None
    stated = model.features.images_per_prompt
    return 1 if stated is None else stated


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
            asked = _memory_request(model, arch, accelerator, count, engine, length)
            ledgers[image] = _with_sustainable_batch(model, memory_ledger(asked))
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
    if ledger.kv_cache <= Memory(0) or wanted < 256:
        return [_weights_do_not_fit(model, ledger, count, region)]
    if wanted > longest:
        return [_context_does_not_fit(model, ledger, wanted, longest, count, region)]
    if problems := _settings_findings(model, Fit(ledger, wanted, longest)):
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


def _memory_request(
    model: Model, arch: Architecture, accelerator: Accelerator, count: int, engine: Release, length: int
) -> MemoryRequest:
    settings = model.engine
    batched, seqs = engine.memory.batch_defaults(accelerator)
    batched = settings.max_num_batched_tokens or batched
    seqs = min(settings.max_num_seqs or seqs, batched)
    return MemoryRequest(
        arch=arch,
        accelerator=accelerator,
        facts=engine.memory,
        split=Parallelism(count * accelerator.cores),
        gpu_memory_utilization=settings.gpu_memory_utilization,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        kv_cache_dtype=settings.kv_cache_dtype,
        enforce_eager=settings.enforce_eager,
        adapter_rank=max((adapter.rank for adapter in model.adapters), default=0),
        adapter_count=len(model.adapters),
        speculative_tokens=model.speculative_decoding.tokens if model.speculative_decoding else 0,
        image_limit=images_per_prompt(model, arch),
        largest_image=largest_image(arch, length),
    )


def _with_sustainable_batch(model: Model, ledger: MemoryLedger) -> MemoryLedger:
    """The ledger with no more sequences in a batch than the cache can hold; those that the file asks for stay.

    Fewer sequences also take less in the sampler, which leaves more for the cache.
    """
    request = ledger.request
    tokens = ledger.kv_tokens(LEAST_TOKENS_OF_A_SEQUENCE)
    sustainable = max(model.engine.concurrency, tokens // LEAST_TOKENS_OF_A_SEQUENCE)
    rounded = max(_STEP_OF_SEQUENCES, sustainable // _STEP_OF_SEQUENCES * _STEP_OF_SEQUENCES)
    asked = model.engine.max_num_seqs is not None or request.facts.kv_cap_fraction is not None
    if asked or tokens <= 0 or rounded >= request.max_num_seqs:
        return ledger
    return memory_ledger(replace(request, max_num_seqs=rounded))


_FIELDS = {
    "gpuMemoryUtilization": ("engine", "gpuMemoryUtilization"),
    "maxNumBatchedTokens": ("engine", "maxNumBatchedTokens"),
}


def _settings_findings(model: Model, fit: Fit) -> list[Finding]:
    """Errors of settings beside length and weights, at the model file's own fields."""
    return [
        replace(found, subject=model.name, field=_FIELDS[found.field[0]])
        for found in fit_findings(fit)
        if found.field and found.field[0] in _FIELDS and found.level is Severity.ERROR
    ]


def _default_length(longest: int, limit: int) -> int:
    """The model's own limit if it fits, else the largest power of two that does: a number people recognise."""
    if longest >= limit:
        return limit
    return 1 << (longest.bit_length() - 1) if longest >= _LEAST_LENGTH else longest


def _weights_do_not_fit(model: Model, ledger: MemoryLedger, count: int, region: str | None) -> Finding:
    spent = ledger.budget - ledger.kv_cache
    accelerator = ledger.request.accelerator
    return Finding(
        "FIT001",
        f"weights {ledger.weights}, activations {ledger.activation} and overhead "
        f"{ledger.non_torch + ledger.graphs_in_budget + ledger.adapters} need {spent} of {ledger.budget} on "
        f"{accelerator.name}:{count}",
        "use "
        + " or ".join(
            _ways_out(model, ledger, count, _LEAST_LENGTH, region) or ["a smaller or quantized checkpoint"]
        ),
        subject=model.name,
        field=("accelerator",),
    )


def _context_does_not_fit(
    model: Model, ledger: MemoryLedger, wanted: int, longest: int, count: int, region: str | None
) -> Finding:
    settings = model.engine
    need = ledger.kv_need(wanted) * settings.concurrency
    times = f" for {settings.concurrency} requests" if settings.concurrency > 1 else ""
    ways = [f"a length of {longest}"] if longest >= 256 else []
    if settings.kv_cache_dtype == "auto" and ledger.request.facts.kv_cap_fraction is None:
        half = memory_ledger(replace(ledger.request, kv_cache_dtype="fp8"))
        reach = longest_length(lambda _: half, ledger.request.arch.max_position, at_once=settings.concurrency)
        ways.append(f"kvCacheDtype fp8 (up to {reach})" if reach < wanted else "kvCacheDtype fp8")
    ways += _ways_out(model, ledger, count, wanted, region)
    return Finding(
        "KV001",
        f"max length {wanted} needs {need} of KV cache{times}, {ledger.kv_cache} left on "
        f"{ledger.request.accelerator.name}:{count} after {ledger.weights} of weights",
        f"use {', '.join(ways[:-1])} or {ways[-1]}" if len(ways) > 1 else f"use {ways[0]}",
        subject=model.name,
        field=("engine", "maxModelLen"),
    )


def _ways_out(model: Model, ledger: MemoryLedger, count: int, wanted: int, region: str | None) -> list[str]:
    """More of the same accelerator, and the smallest other one, on which `wanted` tokens fit, with their prices."""
    here = ledger.request.accelerator
    others = sorted((a for a in accelerators().values() if a.vendor == here.vendor), key=lambda a: a.usable)
    more = [(here, n) for n in (2, 4, 8, 16) if n > count]
    larger = [(a, n) for a in others if a.usable > here.usable for n in (1, 2, 4, 8)]
    ways = _utilization(model, ledger, wanted)
    for options in (more, larger):
        found = next(
            (_offer(a, n, region) for a, n in options if _would_fit(model, ledger, a, n, wanted)), None
        )
        ways += [found] if found else []
    return ways


def _utilization(model: Model, ledger: MemoryLedger, wanted: int) -> list[str]:
    """A higher utilization, where it is enough and leaves room outside the budget."""
    for share in _HIGHER_UTILIZATIONS:
        other = memory_ledger(replace(ledger.request, gpu_memory_utilization=share))
        if share > ledger.request.gpu_memory_utilization and other.holds(wanted, model.engine.concurrency):
            return (
                []
                if _settings_findings(model, Fit(other, wanted, wanted))
                else [f"gpuMemoryUtilization {share:g}"]
            )
    return []


def _offer(accelerator: Accelerator, count: int, region: str | None) -> str:
    """`h100:1`, and the cheapest instance type of `region` that has as many."""
    name = f"{accelerator.name}:{count}"
    priced = [
        (price, t.name)
        for t in types_with(accelerator.name)
        if region and t.accelerator_count >= count and (price := t.price(region).usd_per_hour) is not None
    ]
    return f"{name} ({min(priced)[1]}, ${min(priced)[0]:.2f}/h)" if priced else name


def _would_fit(model: Model, ledger: MemoryLedger, accelerator: Accelerator, count: int, wanted: int) -> bool:
    arch = ledger.request.arch
    sold = any(t.accelerator_count >= count for t in types_with(accelerator.name))
    engine = engine_for(model, accelerator)
    if not sold or split_problem(arch, Parallelism(count * accelerator.cores)) or isinstance(engine, Finding):
        return False
    if number_format_findings(model, arch, accelerator, engine):
        return False
    other = memory_ledger(_memory_request(model, arch, accelerator, count, engine, wanted))
    return other.holds(wanted, model.engine.concurrency)
