"""How PyTorch's allocator rounds a tensor."""

from __future__ import annotations

# Blocks of 10 MiB and more are rounded up to 2 MiB; a remainder of up to 1 MiB stays with the block
# (c10/cuda/CUDACachingAllocator, kMinLargeAlloc, kRoundLarge, kSmallSize).
_MIB = 1 << 20
_LARGE, _STEP, _LEFT = 10 * _MIB, 2 * _MIB, _MIB


def allocated(size: float) -> float:
    """Bytes that a tensor of `size` bytes takes."""
    whole = -(-size // _STEP) * _STEP
    return whole if size >= _LARGE and whole - size <= _LEFT else size
