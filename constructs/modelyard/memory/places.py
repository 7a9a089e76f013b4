"""Field paths of the memory model's settings: in a model file, or in a question to `estimate`."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.model import Model

Field = tuple[str | int, ...]


@dataclass(frozen=True)
class Places:
    """Field paths for findings, and their subject."""

    subject: str
    model: Field
    accelerator: Field
    dtype: Field
    kv_cache_dtype: Field
    max_model_len: Field
    max_num_seqs: Field
    max_num_batched_tokens: Field
    gpu_memory_utilization: Field

    @classmethod
    def in_file(cls, model: Model) -> Places:
        return cls(
            subject=model.name,
            model=("model",),
            accelerator=("accelerator",),
            dtype=("engine", "dtype"),
            kv_cache_dtype=("engine", "kvCacheDtype"),
            max_model_len=("engine", "maxModelLen"),
            max_num_seqs=("engine", "maxNumSeqs"),
            max_num_batched_tokens=("engine", "maxNumBatchedTokens"),
            gpu_memory_utilization=("engine", "gpuMemoryUtilization"),
        )

    @classmethod
    def in_question(cls, request: EstimateRequest) -> Places:
        return cls(
            subject=request.model or str(request.id or "config.json"),
            model=("model",),
            accelerator=("accelerator",),
            dtype=("dtype",),
            kv_cache_dtype=("kvCacheDtype",),
            max_model_len=("maxModelLen",),
            max_num_seqs=("maxNumSeqs",),
            max_num_batched_tokens=("maxNumBatchedTokens",),
            gpu_memory_utilization=("gpuMemoryUtilization",),
        )
