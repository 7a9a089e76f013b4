"""Memory behaviour of an engine release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelyard.hardware import Accelerator
from modelyard.hardware.gpu_features import Capability

Absorbed = Literal["none", "products", "projections"]


@dataclass(frozen=True)
class CacheRules:
    """A release's KV cache behaviour.

    `hybrid`: sliding-window layers cache only the window. `in_flight`: batches that can be scheduled at once;
    windows keep their tokens. `latent`: latent attention is cached as the latent, not as full heads, in
    `latent_width` numbers per token (0: the model's). `tokens_by_groups`: the start-up log counts blocks //
    groups × block size instead of requests × length. `state_blocks`: blocks of recurrent state per request
    and group (2 with prefix caching). `reserved_blocks`: blocks held back in the start-up check that one
    request fits.
    """

    hybrid: bool = True
    in_flight: int = 2
    latent: bool = True
    latent_width: int = 0
    tokens_by_groups: bool = False
    state_blocks: int = 2
    reserved_blocks: int = 1


@dataclass(frozen=True)
class BatchDefault:
    """Batch limits from `memory_gib` on; `excepted`: a compute capability to which the row does not apply."""

    memory_gib: float
    excepted: Capability | None
    tokens: int
    seqs: int


@dataclass(frozen=True)
class BatchRules:
    """Batch defaults. Without chunked prefill (`whole_prompts`) a batch holds a whole prompt, at least
    `least_tokens`; for lengths from `chunk_from` on, prompts are chunked into `chunk_tokens`, with latent
    attention only if `chunk_latent`."""

    rows: tuple[BatchDefault, ...]
    whole_prompts: bool = False
    least_tokens: int = 0
    chunk_from: int = 0
    chunk_tokens: int = 0
    chunk_latent: bool = True


@dataclass(frozen=True)
class MemoryFacts:
    """Memory behaviour of one release, per rank; the table has sources and units.

    `kv_cap_fraction`: Neuron's KV cache limit as a share of the budget; None: no limit. `checkpoint_caches`:
    quantization methods whose statement about the KV cache is followed.
    """

    engine: str
    version: str
    utilization: float
    block_size: int
    batch: BatchRules
    cache: CacheRules
    sampler_bytes: float = 0.0
    mlp_widths: float = 0.0
    hidden_widths: float = 0.0
    fixed_gib: float = 0.0
    reserved: float = 1.0
    expert_workspace: bool = False
    expert_chunk: int = 1 << 30
    non_torch_gib: float = 0.0
    ranks_pcie_gib: float = 0.0
    ranks_nvlink_gib: float = 0.0
    ranks_nvlink_each_gib: float = 0.0
    ranks_hopper_gib: float = 0.0
    ranks_hopper_each_gib: float = 0.0
    fused_gib: float = 0.0
    fused_each_gib: float = 0.0
    graphs_base_gib: float = 0.0
    graphs_per_layer_gib: float = 0.0
    graphs_per_layer_ranks_gib: float = 0.0
    graphs_experts_gib: float = 0.0
    graphs_in_budget: bool = False
    graphs_follow_seqs: bool = False
    context_gib: float = 0.0
    encoder_cache: bool = True
    images_limit_rows: bool = False
    cross_attention_rows: bool = False
    absorbed: Absorbed = "none"
    kv_cap_fraction: float | None = None
    checkpoint_caches: tuple[str, ...] = ()

    def batch_defaults(
        self, accelerator: Accelerator, max_model_len: int = 0, *, latent: bool = False
    ) -> tuple[int, int]:
        """The engine's default (max_num_batched_tokens, max_num_seqs); `latent`: for latent attention."""
        rules = self.batch
        for row in rules.rows:
            excepted = row.excepted is not None and accelerator.compute_capability == row.excepted
            if accelerator.usable.in_gib >= row.memory_gib and not excepted:
                tokens = row.tokens
                if rules.whole_prompts:
                    chunked = 0 < rules.chunk_from <= max_model_len and (rules.chunk_latent or not latent)
                    tokens = rules.chunk_tokens if chunked else max(max_model_len, rules.least_tokens)
                return tokens, row.seqs
        raise LookupError(f"{self.engine} {self.version} has no batch defaults for {accelerator.name}")
