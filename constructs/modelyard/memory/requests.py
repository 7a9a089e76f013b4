"""Builds memory requests, for a model file on given accelerators or for a question to `estimate`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelyard.checkpoints import Architecture
from modelyard.engines import MemoryFacts, Release
from modelyard.engines.registry import engine as engine_called
from modelyard.hardware import Accelerator, Memory
from modelyard.memory.activation import largest_image
from modelyard.memory.drafts import draft_head, draft_memory
from modelyard.memory.ledger import NOTHING, MemoryLedger, MemoryRequest, memory_ledger
from modelyard.memory.loaded_model import draft_architecture, images_per_prompt
from modelyard.memory.parallelism import Parallelism
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.model import Model

LEAST_TOKENS_OF_A_SEQUENCE = 512
"""Prompt and answer of a short exchange. If the sequences of a full batch cannot hold even that, they are
preempted constantly."""

# Round batch sizes to a familiar number.
_STEP_OF_SEQUENCES = 8


@dataclass(frozen=True)
class Run:
    """Settings for running a model, except its length. None stands for the engine's default.

    `usual_seqs`: overrides the engine's default for `max_num_seqs`. The rest is as in `MemoryRequest`.
    """

    arch: Architecture
    accelerator: Accelerator
    facts: MemoryFacts
    split: Parallelism
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    usual_seqs: int | None = None
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    adapter_rank: int = 0
    adapter_count: int = 0
    speculative_tokens: int = 0
    own_drafts: bool = False
    draft: Memory = NOTHING
    draft_layers: int = 0
    image_limit: int | None = None
    video_limit: int = 0
    moe_backend: str = "auto"

    @classmethod
    def of_file(
        cls, model: Model, arch: Architecture, accelerator: Accelerator, split: Parallelism, engine: Release
    ) -> Run:
        """The settings of a model file for `engine`."""
        settings, drafts = model.engine, model.speculative_decoding
        small = draft_architecture(model)
        draft, layers = NOTHING, 0
        if isinstance(small, Architecture):
            draft, layers = draft_memory(arch, small, split)
        elif drafts and drafts.method.startswith("eagle"):
            draft, layers = draft_head(arch, split), 1
        return cls(
            arch=arch,
            accelerator=accelerator,
            facts=engine.memory,
            split=split,
            gpu_memory_utilization=settings.gpu_memory_utilization,
            max_num_seqs=settings.max_num_seqs,
            max_num_batched_tokens=settings.max_num_batched_tokens,
            usual_seqs=engine_called(engine.engine).sequences,
            kv_cache_dtype=settings.kv_cache_dtype,
            enforce_eager=settings.enforce_eager,
            adapter_rank=max((adapter.rank for adapter in model.adapters), default=0),
            adapter_count=len(model.adapters),
            speculative_tokens=drafts.tokens if drafts else 0,
            own_drafts=drafts is not None and drafts.method == "mtp",
            draft=draft,
            draft_layers=layers,
            image_limit=images_per_prompt(model, arch),
            moe_backend=str(settings.args.get("moe-backend", "auto")),
            video_limit=(model.features.videos_per_prompt or 0) if arch.vision else 0,
        )

    @classmethod
    def of_question(
        cls,
        request: EstimateRequest,
        arch: Architecture,
        accelerator: Accelerator,
        facts: MemoryFacts,
        split: Parallelism,
    ) -> Run:
        """The settings of a question, for an engine without further settings."""
        return cls(
            arch=arch,
            accelerator=accelerator,
            facts=facts,
            split=split,
            gpu_memory_utilization=request.gpu_memory_utilization,
            max_num_seqs=request.max_num_seqs,
            max_num_batched_tokens=request.max_num_batched_tokens,
            kv_cache_dtype=request.kv_cache_dtype,
            enforce_eager=request.enforce_eager,
        )

    @property
    def cache_dtype(self) -> str:
        """The format of the KV cache: as set, or as the checkpoint asks where the engine follows it."""
        stored = self.arch.quantization
        followed = stored is not None and stored.method in self.facts.checkpoint_caches
        asked = stored.cache if stored is not None and followed else ""
        return (asked or "auto") if self.kv_cache_dtype == "auto" else self.kv_cache_dtype

    @property
    def length_limit(self) -> int:
        """The longest text that the model takes with this batch, in tokens: an encoder reads it at once."""
        batch = self.max_num_batched_tokens if self.arch.encoder else None
        return min(self.arch.max_position, batch or self.arch.max_position)

    def at(self, length: int) -> MemoryRequest:
        """The request of an engine started with `length`. Stated values stay and defaults follow from them:
        no more sequences than tokens in a batch. An encoder reads a text in one pass, so the
        default batch holds the longest text."""
        tokens, seqs = self.facts.batch_defaults(
            self.accelerator, length, latent=self.arch.latent is not None
        )
        if self.arch.encoder:
            tokens = max(tokens, length)
        tokens = self.max_num_batched_tokens or tokens
        return MemoryRequest(
            arch=self.arch,
            accelerator=self.accelerator,
            facts=self.facts,
            split=self.split,
            gpu_memory_utilization=self.gpu_memory_utilization or self.facts.utilization,
            max_num_seqs=self.max_num_seqs or min(self.usual_seqs or seqs, tokens),
            max_num_batched_tokens=tokens,
            kv_cache_dtype=self.cache_dtype,
            enforce_eager=self.enforce_eager,
            adapter_rank=self.adapter_rank,
            adapter_count=self.adapter_count,
            speculative_tokens=self.speculative_tokens,
            own_drafts=self.own_drafts,
            draft=self.draft,
            draft_layers=self.draft_layers,
            image_limit=self.image_limit,
            largest_image=largest_image(self.arch, length, self.video_limit),
            video_limit=self.video_limit,
            moe_backend=self.moe_backend,
        )


def with_sustainable_batch(model: Model, ledger: MemoryLedger) -> MemoryLedger:
    """The ledger with no more sequences in a batch than the cache can hold; a stated max_num_seqs stays.

    Fewer sequences also need less sampler memory, which leaves more for the cache.
    """
    request = ledger.request
    tokens = ledger.kv_tokens(LEAST_TOKENS_OF_A_SEQUENCE)
    sustainable = max(model.engine.concurrency, tokens // LEAST_TOKENS_OF_A_SEQUENCE)
    rounded = max(_STEP_OF_SEQUENCES, sustainable // _STEP_OF_SEQUENCES * _STEP_OF_SEQUENCES)
    asked = model.engine.max_num_seqs is not None or request.facts.kv_cap_fraction is not None
    if asked or tokens <= 0 or rounded >= request.max_num_seqs:
        return ledger
    return memory_ledger(replace(request, max_num_seqs=rounded))
