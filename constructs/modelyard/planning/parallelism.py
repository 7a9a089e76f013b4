"""Which tensor-parallel sizes a model's shape allows."""

from __future__ import annotations

from modelyard.planning.architecture import Architecture

_FP8_BLOCK = 128


def split_problem(arch: Architecture, tensor_parallel: int) -> str | None:
    """Why the model cannot run on `tensor_parallel` ranks, or None.

    Rules of vLLM's parallel linear layers: heads divide evenly; KV heads divide, or are copied a whole number of
    times; widths divide; block-quantized FP8 keeps whole blocks of 128 on every rank.
    """
    if arch.heads % tensor_parallel:
        return f"{arch.heads} attention heads do not divide by {tensor_parallel}"
    if tensor_parallel <= arch.kv_heads and arch.kv_heads % tensor_parallel:
        return f"{arch.kv_heads} KV heads do not divide by {tensor_parallel}"
    if tensor_parallel > arch.kv_heads and tensor_parallel % arch.kv_heads:
        return f"{tensor_parallel} ranks are not a multiple of {arch.kv_heads} KV heads"
    width = arch.moe_intermediate if arch.experts else arch.intermediate
    if width % tensor_parallel:
        return f"intermediate size {width} does not divide by {tensor_parallel}"
    block_quantized = arch.quantization is not None and arch.quantization.method == "fp8"
    if block_quantized and tensor_parallel > 1 and (width // tensor_parallel) % _FP8_BLOCK:
        return f"intermediate size {width} over {tensor_parallel} ranks breaks the FP8 blocks of {_FP8_BLOCK}"
    return None


def allowed_splits(arch: Architecture, most: int = 64) -> list[int]:
    """Every tensor-parallel size up to `most` that works."""
    return [size for size in range(1, most + 1) if not split_problem(arch, size)]
