"""What a model file asks of an engine on given accelerators, in the terms of the memory model."""

from __future__ import annotations

from dataclasses import replace

from modelyard.architecture import Architecture, UnreadableConfig, architectures, read_config
from modelyard.engines import Release, newest_release, release
from modelyard.engines.release import EngineName
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.planning.activation import largest_image
from modelyard.planning.capability import runs_on
from modelyard.planning.memory import MemoryLedger, MemoryRequest, memory_ledger
from modelyard.planning.parallelism import Parallelism
from modelyard.spec.model import Model

LEAST_TOKENS_OF_A_SEQUENCE = 512
"""Prompt and answer of a short exchange. A full batch whose sequences cannot even hold that is preempted all the time."""

# Sequences in a batch are a number that people recognise.
_STEP_OF_SEQUENCES = 8


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
    if not runs_on(name, accelerator):
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


def memory_request(
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
