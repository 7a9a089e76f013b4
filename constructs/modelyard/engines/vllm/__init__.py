"""vLLM on NVIDIA GPUs."""

from modelyard.engines.vllm.engine import (
    DATA_PARALLEL_PORT,
    KV_TRANSFER_PORT,
    MASTER_PORT,
    Vllm,
    common_args,
    compile_variables,
)

__all__ = [
    "DATA_PARALLEL_PORT",
    "KV_TRANSFER_PORT",
    "MASTER_PORT",
    "Vllm",
    "common_args",
    "compile_variables",
]
