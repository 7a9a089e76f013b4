"""Sizes of the number types in safetensors and GGUF files, from a dated table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import prod
from typing import Any

from modelyard.reading.table import read_table


@cache
def _table() -> Mapping[str, Any]:
    return read_table(files("modelyard.checkpoints").joinpath("data", "tensor_types.yaml"))


@cache
def tensor_types() -> frozenset[str]:
    """Names of all types, of safetensors and of GGUF."""
    return frozenset(_table()["safetensors"]["bits"]) | frozenset(_table()["gguf"]["types"])


@cache
def gguf_types() -> Mapping[int, str]:
    """GGUF's types by their number in a file."""
    return {number: name for name, (number, _, _) in _table()["gguf"]["types"].items()}


@cache
def gguf_bits() -> Mapping[str, float]:
    """Bits per weight of llama.cpp's mixtures, scales included; real files differ by a few percent."""
    found: Mapping[str, float] = _table()["mixtures"]["bits"]
    return found


def tensor_bytes(kind: str, shape: Sequence[int]) -> int:
    """Bytes of a tensor of type `kind`, as its file stores it.

    Raises:
        KeyError: the type is unknown.
    """
    size = prod(shape)
    if (stored := _table()["gguf"]["types"].get(kind)) is not None:
        _, block, width = stored
        return int(-(-size // block) * width)
    return int(-(-size * _table()["safetensors"]["bits"][kind] // 8))
