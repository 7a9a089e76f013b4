"""What a model file asks of an engine on given accelerators, in the terms of the memory model."""

from __future__ import annotations

from dataclasses import replace

from modelyard.architecture import Architecture, UnreadableConfig, architectures, read_config
from modelyard.architecture.quantization import GGUF_BITS
from modelyard.engines import Release, newest_release, release
from modelyard.engines.engine import Engine as InferenceEngine
from modelyard.engines.registry import engine as engine_called
from modelyard.engines.registry import named_engine, places, usual_engine
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.planning.activation import largest_image
from modelyard.planning.drafts import draft_head, draft_memory
from modelyard.planning.memory import NOTHING, MemoryLedger, MemoryRequest, memory_ledger
from modelyard.planning.parallelism import Parallelism
from modelyard.spec.engine import Engine
from modelyard.spec.model import Model
from modelyard.spec.weights import Weights

LEAST_TOKENS_OF_A_SEQUENCE = 512
"""Prompt and answer of a short exchange. A full batch whose sequences cannot even hold that is preempted all the time."""

# Sequences in a batch are a number that people recognise.
_STEP_OF_SEQUENCES = 8


def known_architecture(model: Model) -> Architecture | Finding:
    """Architecture facts of `model`: from the config.json that its file names, or from the table."""
    if model.model.config is not None:
        try:
            read = read_config(
                model.model.config, model_id=model.model.repository, quantization=_loaded_quantization(model)
            )
            return replace(_marked(model, read), source="the config.json that the model file names")
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
        return _as_loaded(model, arch)
    field = ("model", "architecture") if model.model.architecture else ("model",)
    return Finding(
        "MODEL001",
        f"no architecture facts for '{wanted}'",
        "set model.config to the path of its config.json, or model.architecture to a repository with the same one "
        "(`modelyard catalog models`)",
        subject=model.name,
        field=field,
    )


def _loaded_quantization(model: Model) -> str | None:
    """What becomes of a 16-bit checkpoint: a GGUF file's own type, or what the engine makes of it while it loads."""
    if model.model.file:
        return f"gguf {gguf_type(model.model.file)}"
    return {"fp8": "fp8", "int8": "int8", "auto": None}[model.engine.quantization]


def gguf_type(file: str) -> str:
    """The type in a file's name, such as Q4_K_M in `model-q4_k_m-00001-of-00002.gguf`; the name's end where none is."""
    upper = file.upper()
    known = sorted((kind for kind in GGUF_BITS if kind in upper), key=len)
    return known[-1] if known else upper.removesuffix(".GGUF").rpartition("-")[2]


def _as_loaded(model: Model, arch: Architecture) -> Architecture | Finding:
    """`arch` in the format that the file or the engine's settings give its weights."""
    wanted = _loaded_quantization(model)
    if wanted is None or (arch.quantization and not model.model.file):
        return arch
    config = {**architectures().config(arch.model_id)}
    config.pop("quantization_config", None)
    try:
        read = read_config(config, model_id=arch.model_id, quantization=wanted)
    except UnreadableConfig as problem:
        field = ("model", "file") if model.model.file else ("engine", "quantization")
        return Finding(
            "MODEL002", str(problem), "use another file or format", subject=model.name, field=field
        )
    return replace(_marked(model, read), gated=arch.gated, source=arch.source)


def _marked(model: Model, arch: Architecture) -> Architecture:
    """`arch` with the mark of what is quantized while it is loaded."""
    if arch.quantization is None or model.model.file or (model.model.config or {}).get("quantization_config"):
        return arch
    online = model.engine.quantization != "auto"
    return replace(arch, quantization=replace(arch.quantization, online=online))


def images_per_prompt(model: Model, arch: Architecture) -> int | None:
    """Images that a prompt may hold: what the file says, else one; None for a model of text."""
    if not arch.multimodal:
        return None
    stated = model.features.images_per_prompt
    return 1 if stated is None else stated


def engine_of(model: Model, accelerator: Accelerator) -> InferenceEngine:
    """The engine that the file names, or the one for its format and accelerator."""
    if model.engine.name != "auto":
        return named_engine(model.engine.name, model.engine.backend)
    return usual_engine(accelerator, gguf=bool(model.model.file))


def engine_for(model: Model, accelerator: Accelerator) -> Release | Finding:
    """The engine release that serves `model` on `accelerator`."""
    engine = engine_of(model, accelerator)
    name = engine.name
    if not engine.runs_on(accelerator):
        return Finding(
            "ENG001",
            f"engine {name} does not run on {accelerator.name}",
            f"use {places()}",
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


def draft_architecture(model: Model) -> Architecture | Finding | None:
    """Architecture facts of the small model that drafts; None where no other model does, or only a head of one layer."""
    drafts = model.speculative_decoding
    if drafts is None or drafts.model is None or drafts.method != "draft":
        return None
    as_model = model.model_copy(
        update={
            "model": Weights(
                uri=drafts.model.uri, architecture=drafts.model.architecture, config=drafts.model.config
            ),
            "engine": Engine(),
        }
    )
    found = known_architecture(as_model)
    return (
        replace(found, field=("speculativeDecoding", *found.field)) if isinstance(found, Finding) else found
    )


def memory_request(
    model: Model,
    arch: Architecture,
    accelerator: Accelerator,
    split: Parallelism,
    engine: Release,
    length: int,
) -> MemoryRequest:
    settings = model.engine
    batched, seqs = engine.memory.batch_defaults(accelerator)
    batched = settings.max_num_batched_tokens or batched
    seqs = engine_called(engine.engine).sequences or seqs
    if arch.encoder:  # a text is read at once
        batched = max(batched, length)
    seqs = min(settings.max_num_seqs or seqs, batched)
    drafts = model.speculative_decoding
    small = draft_architecture(model)
    draft, layers = NOTHING, 0
    if isinstance(small, Architecture):
        draft, layers = draft_memory(arch, small, split)
    elif drafts and drafts.method.startswith("eagle"):
        draft, layers = draft_head(arch, split), 1
    return MemoryRequest(
        arch=arch,
        accelerator=accelerator,
        facts=engine.memory,
        split=split,
        gpu_memory_utilization=settings.gpu_memory_utilization,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        kv_cache_dtype=settings.kv_cache_dtype,
        enforce_eager=settings.enforce_eager,
        adapter_rank=max((adapter.rank for adapter in model.adapters), default=0),
        adapter_count=len(model.adapters),
        speculative_tokens=drafts.tokens if drafts else 0,
        own_drafts=drafts is not None and drafts.method == "mtp",
        draft=draft,
        draft_layers=layers,
        image_limit=images_per_prompt(model, arch),
        largest_image=largest_image(arch, length),
    )


def with_sustainable_batch(model: Model, ledger: MemoryLedger) -> MemoryLedger:
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
