"""Memory of the KV cache: what one request of a given length needs on each accelerator."""

from __future__ import annotations

from collections.abc import Callable

from modelyard.hardware import Memory
from modelyard.planning.architecture import Architecture


def kv_bytes_per_token_and_layer(arch: Architecture, tensor_parallel: int, kv_cache_dtype: str) -> int:
    """Keys and values of one token in one layer on one rank; heads are copied beyond one rank a KV head."""
    heads = max(1, arch.kv_heads // tensor_parallel)
    return 2 * heads * arch.head_dim * (1 if kv_cache_dtype == "fp8" else 2)


def kv_cache_for_request(
    arch: Architecture,
    *,
    length: int,
    tensor_parallel: int,
    kv_cache_dtype: str,
    max_num_batched_tokens: int,
    block_size: int,
) -> Memory:
    """KV cache that one request of `length` tokens occupies on each rank.

    Sliding-window layers keep the window plus the tokens in flight, which are two batches with asynchronous
    scheduling, and one more block (vLLM v1/kv_cache_interface.py, SlidingWindowSpec).
    """
    page = kv_bytes_per_token_and_layer(arch, tensor_parallel, kv_cache_dtype) * block_size
    full = _blocks(length, block_size)
    sliding = _blocks(min(arch.sliding_window - 1 + 2 * max_num_batched_tokens, length), block_size) + 1
    full_layers = arch.layers - arch.sliding_layers
    return Memory.bytes(
        page * (full_layers * full + (arch.sliding_layers * sliding if arch.sliding_layers else 0))
    )


def longest_length(need: Callable[[int], Memory], available: Memory, limit: int, block_size: int) -> int:
    """The longest length up to `limit`, in whole blocks, whose `need` is within `available`; 0 when none is."""
    low, high = 0, limit // block_size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if need(middle * block_size) <= available else (low, middle - 1)
    return limit if low == limit // block_size and need(limit) <= available else low * block_size


def _blocks(tokens: int, block_size: int) -> int:
    return -(-tokens // block_size)
