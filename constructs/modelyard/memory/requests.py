"""What a model file asks of an engine on given accelerators, in the terms of the memory model."""

from __future__ import annotations

from dataclasses import replace

from modelyard.architecture import Architecture
from modelyard.engines import Release, engines
from modelyard.hardware import Accelerator
from modelyard.memory.activation import largest_image
from modelyard.memory.drafts import draft_head, draft_memory
from modelyard.memory.ledger import NOTHING, MemoryLedger, MemoryRequest, memory_ledger
from modelyard.memory.loaded_model import draft_architecture, images_per_prompt
from modelyard.memory.parallelism import Parallelism
from modelyard.spec.model import Model

LEAST_TOKENS_OF_A_SEQUENCE = 512
"""Prompt and answer of a short exchange. A full batch whose sequences cannot even hold that is preempted all the time."""

# Sequences in a batch are a number that people recognise.
_STEP_OF_SEQUENCES = 8


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
    seqs = engines()[engine.engine].sequences or seqs
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
