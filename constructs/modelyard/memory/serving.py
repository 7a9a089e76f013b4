"""How one model runs on given accelerators: engine, parallelism, length and batch, or why it cannot."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.checkpoints import Architecture
from modelyard.engines import Release
from modelyard.engines.registry import engine as engine_called
from modelyard.findings import Finding
from modelyard.hardware import Accelerator, Memory, Prices
from modelyard.memory.capability import engine_findings
from modelyard.memory.fit import Fit, batch_findings, longest_length, text_findings, utilization_findings
from modelyard.memory.ledger import MemoryLedger, memory_ledger
from modelyard.memory.llama_server import cpu_ledger, longest_context, most_layers, offload_ledger
from modelyard.memory.loaded_model import draft_architecture, known_architecture
from modelyard.memory.misfits import LEAST_LENGTH, context_does_not_fit, weights_do_not_fit
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.places import Places
from modelyard.memory.release_choice import engine_for
from modelyard.memory.requests import Run, with_sustainable_batch
from modelyard.memory.topology import Topology, topology
from modelyard.spec.engine import LEAST_MAX_MODEL_LEN
from modelyard.spec.model import Model


@dataclass(frozen=True)
class Serving:
    """Settings with which `model` fits. `count`: accelerators per replica, over `topology.nodes` nodes.
    `longest`: the maximum `maxModelLen`. `gpu_layers`: for llama-server; None: all."""

    model: Model
    arch: Architecture
    accelerator: Accelerator
    count: int
    release: Release
    topology: Topology
    dtype: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    ledger: MemoryLedger
    longest: int
    gpu_layers: int | None = None

    @property
    def tensor_parallel(self) -> int:
        """Tensor-parallel ranks, in logical cores."""
        return self.topology.split.tensor

    @property
    def nodes(self) -> int:
        """Pods per replica; several pods run on one node each."""
        return self.topology.nodes

    @property
    def keeps_cache(self) -> bool:
        """Whether requests take KV cache: an encoder's do not."""
        return self.ledger.kv_need(self.max_model_len).in_bytes > 0

    @property
    def on_cpu(self) -> bool:
        return self.accelerator.vendor == "cpu"


def plan_serving(
    model: Model,
    accelerator: Accelerator,
    count: int,
    prices: Prices | None = None,
    known: Architecture | None = None,
) -> Serving | list[Finding]:
    """Settings with which `model` fits on `count` of `accelerator`, or all reasons why it does not, with
    prices of the alternatives if `prices` are given. `known`: the architecture of a model that is not in the
    table."""
    arch = known or known_architecture(model)
    engine = engine_for(model, accelerator)
    small = draft_architecture(model)
    problems = [found for found in (arch, engine, small) if isinstance(found, Finding)]
    if isinstance(arch, Finding) or isinstance(engine, Finding):
        return problems
    problems += engine_findings(model, arch, accelerator, engine)
    by_layers = engine_called(engine.engine).memory == "layers"
    divided = (
        Topology(Parallelism(pipeline=count)) if by_layers else topology(model, arch, accelerator, count)
    )
    if isinstance(divided, Finding):
        problems.append(divided)
    elif divided.nodes > 1 and "nodes" not in engine.supports:
        problems.append(
            Finding(
                "ENG001",
                f"{engine.engine} {engine.version} runs on one node here, {count} {accelerator.name} are {divided.nodes}",
                "use fewer accelerators, or engine vllm",
                subject=model.name,
                field=("accelerator",),
            )
        )
    if problems or isinstance(divided, Finding):
        return problems
    if by_layers:
        return _fit_by_layers(model, arch, accelerator, count, engine, divided)
    return _fit(model, arch, accelerator, count, engine, divided, prices)


def _fit(
    model: Model,
    arch: Architecture,
    accelerator: Accelerator,
    count: int,
    engine: Release,
    divided: Topology,
    prices: Prices | None,
) -> Serving | list[Finding]:
    settings = model.engine
    if found := _beyond_limit(model, arch):
        return [found]
    run = Run.of_file(model, arch, accelerator, divided.split, engine)
    ledgers: dict[tuple[int, int | None], MemoryLedger] = {}

    def ledger_at(length: int) -> MemoryLedger:
        asked = run.at(length)
        decided = asked.max_num_batched_tokens, asked.largest_image  # everything that depends on the length
        if decided not in ledgers:
            ledgers[decided] = with_sustainable_batch(model, memory_ledger(asked))
        return ledgers[decided]

    limit = arch.max_position
    longest = longest_length(ledger_at, limit, at_once=settings.concurrency)
    wanted = settings.max_model_len or _default_length(longest, run.length_limit)
    ledger = ledger_at(max(wanted, 1))
    fit, places = Fit(ledger, wanted, longest), Places.in_file(model)
    batch = list(batch_findings(fit, places))
    if ledger.kv_cache <= Memory(0) or wanted < LEAST_MAX_MODEL_LEN:
        return [weights_do_not_fit(model, ledger, count, prices), *batch]
    if wanted > longest:
        return [context_does_not_fit(model, ledger, wanted, longest, count, prices), *batch]
    if problems := [*batch, *utilization_findings(fit, places)]:
        return problems
    lacks_bfloat16 = accelerator.vendor == "nvidia" and not accelerator.has("bfloat16")
    dtype = "float16" if settings.dtype == "auto" and lacks_bfloat16 else settings.dtype
    return Serving(
        model=model,
        arch=arch,
        accelerator=accelerator,
        count=count,
        release=engine,
        topology=divided,
        dtype=dtype,
        max_model_len=wanted,
        max_num_seqs=ledger.request.max_num_seqs,
        max_num_batched_tokens=ledger.request.max_num_batched_tokens,
        ledger=ledger,
        longest=longest,
    )


_USUAL_CONTEXT = 8192
"""Default context of a llama-server slot, in tokens: each slot allocates its cache at start-up."""


def _fit_by_layers(
    model: Model,
    arch: Architecture,
    accelerator: Accelerator,
    count: int,
    engine: Release,
    divided: Topology,
) -> Serving | list[Finding]:
    """llama-server: all layers on the GPUs if they fit, else as many as leave room for the wanted context,
    down to none."""
    settings = model.engine
    if found := _beyond_limit(model, arch):
        return [found]
    limit = arch.max_position
    run = Run.of_file(model, arch, accelerator, divided.split, engine)
    wanted = settings.max_model_len or min(run.length_limit, _USUAL_CONTEXT)
    request = run.at(wanted)
    layers: int | None = None
    if accelerator.vendor == "cpu":
        ledger = cpu_ledger(request)
    else:
        layers = settings.gpu_layers
        if layers is None and (most := most_layers(request, wanted)) < arch.layers:
            layers = most
        ledger = offload_ledger(request, -1 if layers is None else layers)
    longest = longest_context(ledger, limit)
    if ledger.kv_cache <= Memory(0):
        return [weights_do_not_fit(model, ledger, count, None)]
    if wanted > longest:
        return [context_does_not_fit(model, ledger, wanted, longest, count, None)]
    if problems := [*text_findings(Fit(ledger, wanted, longest), Places.in_file(model))]:
        return problems
    return Serving(
        model=model,
        arch=arch,
        accelerator=accelerator,
        count=count,
        release=engine,
        topology=Topology(Parallelism()),
        dtype="auto",
        max_model_len=wanted,
        max_num_seqs=request.max_num_seqs,
        max_num_batched_tokens=request.max_num_batched_tokens,
        ledger=ledger,
        longest=longest,
        gpu_layers=layers,
    )


def _beyond_limit(model: Model, arch: Architecture) -> Finding | None:
    wanted, limit = model.engine.max_model_len, arch.max_position
    if not wanted or wanted <= limit:
        return None
    return Finding(
        "LEN001",
        f"maxModelLen {wanted} exceeds the {limit} tokens of {arch.model_id}",
        f"use {limit} or less",
        subject=model.name,
        field=("engine", "maxModelLen"),
    )


def _default_length(longest: int, limit: int) -> int:
    """The model's limit if it fits, else the largest power of two that does, a familiar number."""
    if longest >= limit:
        return limit
    return 1 << (longest.bit_length() - 1) if longest >= LEAST_LENGTH else longest
