"""Bytes of the experts of an MXFP4 checkpoint as an engine's kernels lay them out."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.checkpoints import Architecture
from modelyard.engines.expert_layouts import ExpertLayout
from modelyard.memory.allocation import allocated
from modelyard.memory.parallelism import Parallelism

# Values that share a scale (OCP Microscaling Formats, MXFP4).
_GROUP = 32


def in_layout(arch: Architecture, layout: ExpertLayout | None) -> bool:
    """Whether `layout` speaks of the experts of `arch`: only vLLM's own method for MXFP4 pads them
    (quantization/mxfp4.py); checkpoints of compressed-tensors and Quark keep their sizes."""
    return (
        layout is not None
        and arch.moe is not None
        and arch.quantization is not None
        and arch.quantization.method == "mxfp4"
    )


def expert_bytes(arch: Architecture, layout: ExpertLayout, split: Parallelism) -> float:
    """Allocated bytes of the experts of one layer on one rank, their biases included."""
    return sum(allocated(size) for size in _tensors(arch, layout, split))


def _tensors(arch: Architecture, layout: ExpertLayout, split: Parallelism) -> Iterator[float]:
    moe = arch.moe
    assert moe is not None
    ranks = split.tensor * split.data
    count, share = (-(-moe.count // ranks), 1) if split.expert else (moe.count, ranks)
    hidden = _up(moe.latent or arch.hidden, layout.hidden)
    inner = _up(-(-moe.intermediate // share), layout.intermediate)
    for outputs, inputs in ((2 * inner, hidden), (hidden, inner)):
        groups = _up(-(-inputs // _GROUP), layout.scale_groups)
        yield count * _tiled(outputs, -(-inputs // 2), layout.value_tile)
        yield count * _tiled(outputs, groups, layout.scale_tile)
        if layout.scales_twice:
            yield count * outputs * -(-inputs // _GROUP)
        if moe.bias:
            yield count * outputs * layout.bias_bytes


def _tiled(rows: int, columns: int, tile: tuple[int, int]) -> int:
    return _up(rows, tile[0]) * _up(columns, tile[1])


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
