"""A single query of the memory model and its answer: what the engine will log at start-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.checkpoints.derivatives import format_in
from modelyard.engines import MemoryFacts, engine, memory_facts_for, newest_release
from modelyard.findings import Finding, Severity
from modelyard.hardware import (
    Accelerator,
    Memory,
    accelerator_called,
    accelerators,
    compute_capability,
    unlisted_gpu,
)
from modelyard.memory.fit import Fit, fit_findings, longest_length, text_findings
from modelyard.memory.ledger import MemoryLedger, memory_ledger
from modelyard.memory.llama_server import longest_context, most_layers, offload_ledger
from modelyard.memory.number_formats import format_findings
from modelyard.memory.parallelism import Parallelism, split_problem
from modelyard.memory.places import Places
from modelyard.memory.requests import Run
from modelyard.reading import suggestion
from modelyard.spec.estimate import EstimateRequest


@dataclass(frozen=True)
class Estimate:
    """The answer. `ledger` is None if the question is invalid; `findings` then say why.

    `max_model_len`: the requested length, or the model's limit. `longest`: the longest length that fits, in
    tokens, up to the model's limit.
    """

    request: EstimateRequest
    findings: tuple[Finding, ...]
    ledger: MemoryLedger | None = None
    max_model_len: int = 0
    longest: int = 0

    @property
    def fits(self) -> bool:
        """Whether the engine starts and serves `max_model_len`."""
        return self.ledger is not None and all(f.level is not Severity.ERROR for f in self.findings)


def estimate(
    request: EstimateRequest, adjust: Callable[[MemoryFacts], MemoryFacts] = lambda facts: facts
) -> Estimate:
    """Answer `request`; problems become findings, never exceptions. `adjust` changes the engine's memory
    facts, for calibration."""
    problems: list[Finding] = []
    arch = _architecture(request, problems)
    accelerator = _accelerator(request, problems)
    facts = _facts(request, accelerator, problems)
    if arch is None or accelerator is None or facts is None:
        return Estimate(request, tuple(problems))
    facts = adjust(facts)
    problems += _mismatches(request, accelerator)
    # Before 0.10, engines had their own kernels for an fp8 cache on any GPU.
    cache_dtype = request.kv_cache_dtype if facts.cache.hybrid else "auto"
    split = Parallelism(
        request.tensor_parallel, request.pipeline_parallel, request.data_parallel, request.expert_parallel
    )
    by_layers = engine(request.engine).memory == "layers"
    if not by_layers and (reason := split_problem(arch, split)):
        problems.append(
            _finding(
                "TP001",
                f"the model cannot be split like this: {reason}",
                "use sizes that divide the model",
                "tensorParallel",
            )
        )
    places = Places.in_question(request)
    problems += format_findings(arch, accelerator, places, request.dtype, cache_dtype)
    if any(found.level is Severity.ERROR for found in problems):
        return Estimate(request, tuple(problems))
    wanted = request.max_model_len or arch.max_position
    run = Run.of_question(request, arch, accelerator, facts, split)
    limit = max(arch.max_position, wanted)
    if by_layers:
        layers = -1 if request.n_gpu_layers is None else request.n_gpu_layers
        ledger = offload_ledger(run.at(wanted), layers)
        longest = longest_context(ledger, limit)
        if longest < wanted:
            found = most_layers(run.at(wanted), wanted)
            problems.append(
                _finding(
                    "KV001",
                    f"a context of {wanted} for {ledger.request.max_num_seqs} slots needs "
                    f"{ledger.kv_need(wanted) * ledger.request.max_num_seqs}, {ledger.kv_cache} left",
                    f"use a context of {longest}, or nGpuLayers {found} of {arch.layers}",
                    "maxModelLen",
                )
            )
        problems += text_findings(Fit(ledger, wanted, longest), places)
        return Estimate(request, tuple(problems), ledger, wanted, longest)
    ledger = memory_ledger(run.at(wanted))
    longest = longest_length(lambda length: memory_ledger(run.at(length)), limit)
    problems += fit_findings(Fit(ledger, wanted, longest), places)
    return Estimate(request, tuple(problems), ledger, wanted, longest)


def _mismatches(request: EstimateRequest, accelerator: Accelerator) -> Iterator[Finding]:
    """An engine that does not run on the accelerator, and a compute capability that contradicts it."""
    if not engine(request.engine).runs_on(accelerator):
        yield _finding(
            "ENG001",
            f"engine {request.engine} does not run on {accelerator.name}",
            "vllm and llama-server run on NVIDIA GPUs, vllm-neuron on trn2",
            "engine",
        )
    stated = compute_capability(request.compute_capability) if request.compute_capability else None
    if stated and stated != accelerator.compute_capability:
        own = ".".join(map(str, accelerator.compute_capability)) if accelerator.compute_capability else "none"
        yield _finding(
            "SPEC003",
            f"computeCapability {request.compute_capability} is not that of {accelerator.name}: {own}",
            "leave it out beside accelerator",
            "computeCapability",
        )


def _finding(code: str, message: str, fix: str, *field: str) -> Finding:
    return Finding(code, message, fix, field=field)


def _architecture(request: EstimateRequest, problems: list[Finding]) -> Architecture | None:
    try:
        if request.config is not None:
            return read_config(request.config, quantization=request.quantization, dtype=request.dtype)
        name = architectures().called(str(request.model))
        if name is None:
            problems.append(
                _finding(
                    "MODEL001",
                    f"no architecture facts for '{request.model}'",
                    f"{suggestion(str(request.model), architectures().repositories())}give its config.json instead, "
                    "which `modelyard model add hf://ORG/NAME` fetches",
                    "model",
                )
            )
            return None
        named = format_in(name)
        if named and named.kind == "gguf" and request.quantization is None:
            message = f"{name} holds GGUF files, whose names state their format"
            problems.append(
                _finding("MODEL005", message, "add the file's, such as 'gguf Q4_K_M'", "quantization")
            )
            return None
        config = architectures().config(name)
        return read_config(config, model_id=name, quantization=request.quantization, dtype=request.dtype)
    except UnreadableConfig as problem:
        problems.append(
            _finding(
                "MODEL002",
                str(problem),
                "give the checkpoint's whole config.json",
                *("config", *problem.missing[:1]),
            )
        )
        return None


def _accelerator(request: EstimateRequest, problems: list[Finding]) -> Accelerator | None:
    stated = request.compute_capability
    if request.accelerator_memory_gib is not None:
        return unlisted_gpu(
            Memory.gib(request.accelerator_memory_gib), compute_capability(stated) if stated else None
        )
    known = accelerator_called(str(request.accelerator))
    if known is None:
        problems.append(
            _finding(
                "HW001",
                f"unknown accelerator '{request.accelerator}'",
                suggestion(str(request.accelerator), accelerators())
                + f"use one of {', '.join(accelerators())}, or acceleratorMemoryGiB and computeCapability",
                "accelerator",
            )
        )
    return known


def _facts(
    request: EstimateRequest, accelerator: Accelerator | None, problems: list[Finding]
) -> MemoryFacts | None:
    version = request.engine_version
    if version is None:
        version = newest_release(request.engine).memory.version
    try:
        return memory_facts_for(
            request.engine,
            version,
            accelerator.compute_capability if accelerator else None,
            request.kv_cache_dtype,
        )
    except LookupError as problem:
        problems.append(
            _finding("ENG001", str(problem), "use a released version, such as 0.19.0", "engineVersion")
        )
        return None
