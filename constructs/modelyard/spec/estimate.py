"""A query of the memory model, from the command line of `modelyard estimate` or a line of JSON."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from modelyard.engines.registry import USUAL, has_memory_model, memory_models
from modelyard.spec.choices import one_of
from modelyard.spec.document import Document

_CAPABILITY = re.compile(r"^[0-9]+\.[0-9]$")


def _capability(value: object) -> object:
    text = f"{value:.1f}" if isinstance(value, int | float) and not isinstance(value, bool) else value
    if isinstance(text, str) and not _CAPABILITY.match(text):
        raise ValueError("must be a compute capability such as 8.9")
    return text


Count = Annotated[int, Field(ge=1, le=1 << 30)]


_ENGINES = one_of(memory_models, lambda value: isinstance(value, str) and has_memory_model(value))


class EstimateRequest(Document):
    """What to estimate. Absent fields have the engine's default."""

    id: str | int | None = None
    """Repeated in the answer."""
    model: str | None = None
    """ID of a model in the bundled table, instead of `config`."""
    config: dict[str, Any] | None = None
    """A Hugging Face config.json."""
    accelerator: str | None = None
    """Name of an accelerator, instead of its memory and capability."""
    accelerator_memory_gib: float | None = Field(default=None, gt=0, le=4096, alias="acceleratorMemoryGiB")
    """Memory that the framework sees on one GPU, in GiB."""
    compute_capability: Annotated[str, BeforeValidator(_capability)] | None = None
    tensor_parallel: Count = 1
    pipeline_parallel: Count = 1
    data_parallel: Count = 1
    expert_parallel: bool = False
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    max_model_len: Count | None = None
    max_num_seqs: Count | None = None
    max_num_batched_tokens: Count | None = None
    kv_cache_dtype: Literal[
        "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla"
    ] = "auto"
    quantization: str | None = None
    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = "auto"
    enforce_eager: bool = False
    engine: Annotated[str, *_ENGINES] = USUAL
    engine_version: str | None = None
    n_gpu_layers: Annotated[int, Field(ge=-1)] | None = None
    """llama-server: layers on the GPU, -1 for all."""

    @model_validator(mode="before")
    @classmethod
    def _absent_is_null(cls, values: Any) -> Any:
        """Treat null as absent, in every field."""
        return (
            {k: v for k, v in values.items() if v not in (None, "")} if isinstance(values, dict) else values
        )

    @model_validator(mode="after")
    def _one_model_one_accelerator(self) -> EstimateRequest:
        if (self.config is None) == (self.model is None):
            raise ValueError("give one of config and model")
        if (self.accelerator is None) == (self.accelerator_memory_gib is None):
            raise ValueError("give one of accelerator and acceleratorMemoryGiB")
        return self
