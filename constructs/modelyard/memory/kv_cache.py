"""KV cache memory: vLLM's block layout, and what one request of a given length needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from modelyard.checkpoints import Architecture
from modelyard.engines import CacheRules
from modelyard.hardware import Memory

# Sparse attention caches its index keys in FP8, with one 32-bit scale per 128 numbers (models/deepseek_v2.py,
# Indexer).
_INDEX_BLOCK = 128
# In models with recurrent layers, latent attention kernels need blocks in multiples of 128 tokens
# (platforms/interface.py, _align_hybrid_block_size).
_LATENT_STEP = 128
_HEAD_WIDTH_OF_DS_MLA = 656  # fp8_ds_mla: 512 numbers in FP8, 4 scales, 64 rotary numbers in 16 bit
# Groups are padded to the larger size if it is less than this multiple of the smaller.
_PAD_UP_TO = 1.5
_WITHOUT_CACHE = ("none", "encoder")


CURRENT = CacheRules()


@dataclass(frozen=True)
class CacheGroup:
    """Layers that share a block table. `window` is 0 if every token is kept; `state`: a recurrent state
    instead of tokens; `denser`: how many times the layout's tokens a block holds, in layers that keep less of
    each."""

    layers: int
    window: int = 0
    state: bool = False
    denser: int = 1


@dataclass(frozen=True)
class CacheLayout:
    """The KV cache of one rank: all groups take blocks of `bytes_per_block` from one pool."""

    block_size: int
    bytes_per_block: int
    groups: tuple[CacheGroup, ...]
    rules: CacheRules
    tokens_in_flight: int
    speculative_tokens: int = 0

    def blocks_for(self, length: int) -> int:
        """Blocks that one request of `length` tokens needs (vllm/v1/kv_cache_interface.py)."""
        blocks = 0
        for group in self.groups:
            size = self.block_size * group.denser
            if group.state:
                blocks += self.rules.state_blocks + self.speculative_tokens
            elif group.window:
                kept = min(group.window - 1 + self.tokens_in_flight, length)
                blocks += _ceil(kept, size) + 1
            else:
                blocks += _ceil(length, size)
        return blocks

    def need(self, length: int) -> Memory:
        """KV cache that one request of `length` tokens needs."""
        return Memory.bytes(self.bytes_per_block * self.blocks_for(length))

    def holds(self, available: Memory, length: int, at_once: int = 1) -> bool:
        """Whether `at_once` requests of `length` fit `available`, by the engine's start-up check
        (_check_enough_kv_cache_memory)."""
        blocks = self.blocks_for(length) * at_once + self.rules.reserved_blocks
        return self.bytes_per_block * blocks <= available.in_bytes

    def blocks(self, available: Memory) -> int:
        """Blocks that `available` memory holds."""
        return max(0, int(available.in_bytes // self.bytes_per_block)) if self.bytes_per_block else 0

    def concurrency(self, available: Memory, length: int) -> float:
        """Requests of `length` that fit at the same time."""
        needed = self.blocks_for(length)
        return self.blocks(available) / needed if needed else 0.0

    def tokens(self, available: Memory, length: int) -> int:
        """Tokens that fit, as the release logs them at start-up for a longest request of `length`."""
        if self.rules.tokens_by_groups:
            return self.blocks(available) // len(self.groups) * self.block_size
        return int(self.concurrency(available, length) * length)


def kv_bytes_per_token_and_layer(
    arch: Architecture, tensor_parallel: int, kv_cache_dtype: str, rules: CacheRules = CURRENT
) -> int:
    """Bytes per token in one layer on one rank.

    KV heads are replicated if there are more ranks than heads; the latent of multi-head latent attention is
    replicated on every rank.
    """
    size = bytes_per_number(arch, kv_cache_dtype)
    if arch.latent and rules.latent:
        index = arch.latent.index_dim + arch.latent.index_dim // _INDEX_BLOCK * 4
        if kv_cache_dtype == "fp8_ds_mla" or (index and size == 1):  # sparse attention has no other FP8 cache
            return _HEAD_WIDTH_OF_DS_MLA + index
        return (rules.latent_width or arch.latent.kv_rank + arch.latent.rope_dim) * size + index
    if arch.latent:  # keys with their rotary part, values padded to the same width
        heads = -(-arch.heads // tensor_parallel)
        return 2 * heads * _padded(arch.latent.nope_dim + arch.latent.rope_dim) * size
    return max(_bytes_by_kind(arch, tensor_parallel, size).values())


def _bytes_by_kind(arch: Architecture, tensor_parallel: int, size: int) -> dict[str, int]:
    """Bytes per token in a layer with a window, and in one with full attention, whose shapes can differ."""
    shapes = {"sliding": (arch.kv_heads, arch.head_dim)}
    shapes["full"] = (
        (arch.global_kv_heads, arch.global_head_dim) if arch.global_head_dim else shapes["sliding"]
    )
    return {
        kind: 2 * max(1, heads // tensor_parallel) * width * size for kind, (heads, width) in shapes.items()
    }


def _denser(arch: Architecture, kind: str, tensor_parallel: int) -> int:
    """How many times the tokens of the widest layers a block of layers of `kind` holds.

    Blocks are equally large; those of narrower layers hold more tokens where the size is a multiple, and are
    padded if not (v1/core/kv_cache_planning.py, unify_kv_cache_spec_page_size).
    """
    taken = _bytes_by_kind(arch, tensor_parallel, 1)
    times, rest = divmod(max(taken.values()), taken.get(kind, max(taken.values())))
    return 1 if rest else times


def bytes_per_number(arch: Architecture, kv_cache_dtype: str) -> int:
    return 1 if kv_cache_dtype.startswith("fp8") else arch.bytes_per_parameter


def _padded(width: int) -> int:
    """Pad to a head size that attention kernels support (vLLM before latent attention: 192 became 256)."""
    return next((size for size in (64, 80, 96, 112, 128, 256) if width <= size), width)


@lru_cache(maxsize=65536)
def cache_layout(
    arch: Architecture,
    *,
    tensor_parallel: int,
    kv_cache_dtype: str,
    max_num_batched_tokens: int,
    block_size: int,
    pipeline: int = 1,
    layers: range | None = None,
    rules: CacheRules = CURRENT,
    draft_layers: int = 0,
    speculative_tokens: int = 0,
) -> CacheLayout:
    """The layout on one rank that holds `layers` (all of them when None).

    `draft_layers`: full-attention layers that draft `speculative_tokens` tokens and are cached with the
    model's own layers.

    Layers of one kind form groups of equal size over the whole model, assigned round-robin, so that every
    pipeline stage has its share of each group (vllm/v1/core/kv_cache_utils.py, get_kv_cache_groups).
    """
    here = range(arch.layers) if layers is None else layers
    per_token = kv_bytes_per_token_and_layer(arch, tensor_parallel, kv_cache_dtype, rules)
    state = _state_bytes(arch, tensor_parallel, speculative_tokens)
    if state and per_token:
        step = max(block_size, _LATENT_STEP) if arch.latent else block_size
        block_size = step * _ceil(state, step * per_token)
    page = block_size * per_token or state
    kinds: dict[str, list[int]] = {}
    for layer, kind in enumerate(arch.layer_types):
        if kind not in _WITHOUT_CACHE:
            kinds.setdefault(_cached_as(kind, rules), []).append(layer)
    if draft_layers and arch.layers - 1 in here:  # drafts are on the last stage
        kinds.setdefault("full", []).extend(range(arch.layers, arch.layers + draft_layers))
        here = range(here.start, arch.layers + draft_layers)
    groups: list[CacheGroup] = []
    widest = 0
    size = _group_size([len(members) for members in kinds.values()]) if kinds else 0
    for shared, members in kinds.items():
        count = _ceil(len(members), size)
        for number in range(count):
            mine = [layer for layer in members[number::count] if layer in here]
            window = arch.window if shared == "sliding" else 0
            denser = 1 if state or arch.latent or not rules.hybrid else _denser(arch, shared, tensor_parallel)
            groups.append(CacheGroup(len(mine), window, shared in ("linear", "mamba"), denser))
            widest = max(widest, len(mine))
    # One batch per pipeline stage, plus one with asynchronous scheduling (VllmConfig.max_in_flight_tokens).
    in_flight = max_num_batched_tokens * (pipeline + rules.in_flight - 1)
    return CacheLayout(block_size, page * widest, tuple(groups), rules, in_flight, speculative_tokens)


def _cached_as(kind: str, rules: CacheRules) -> str:
    """The layer kind whose group `kind` shares: without windows, it is cached like full attention."""
    # Chunked attention (Llama 4) is cached in full unless VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE
    # is set.
    return "full" if kind == "chunked" or (kind == "sliding" and not rules.hybrid) else kind


def _group_size(sizes: list[int]) -> int:
    return max(sizes) if max(sizes) < min(sizes) * _PAD_UP_TO else min(sizes)


def _state_bytes(arch: Architecture, tensor_parallel: int, speculative_tokens: int) -> int:
    """State of one recurrent layer per sequence on one rank (layers/mamba/mamba_utils.py)."""
    state = arch.linear
    if state is None:
        return 0
    if state.kind == "mamba2":
        groups = state.key_heads + (
            0 if state.key_heads % tensor_parallel == 0 else tensor_parallel - state.key_heads
        )
        channels = state.value_heads * state.value_dim + 2 * groups * state.key_dim
    else:
        channels = state.conv_channels
    steps = state.conv_kernel - 1 + speculative_tokens
    conv = channels // tensor_parallel * steps * arch.bytes_per_parameter
    return conv + state.value_heads // tensor_parallel * state.value_dim * state.key_dim * state.state_bytes


def _ceil(number: int, size: int) -> int:
    return -(-number // size)
