"""The server's command line and environment, from settings that the plan has decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelyard.engines import vllm, vllm_neuron
from modelyard.engines.release import Release


@dataclass(frozen=True)
class ServeSettings:
    """Everything that the command line of one server says.

    `tensor_parallel` counts accelerators' logical cores: 1 a GPU, several a Neuron device.
    """

    model_path: str
    served_names: tuple[str, ...]
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    tensor_parallel: int
    gpu_memory_utilization: float
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    prefix_caching: bool = True
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    images_per_prompt: int | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    max_lora_rank: int = 16
    speculative: Mapping[str, Any] | None = None
    trust_remote_code: bool = False
    load_strategy: str = "lazy"
    drain_seconds: int = 60
    otlp_endpoint: str | None = None
    port: int = 8000
    extra: Mapping[str, Any] = field(default_factory=dict)


def server_args(settings: ServeSettings, release: Release) -> tuple[str, ...]:
    """Arguments for the image's entrypoint `vllm serve`."""
    if release.engine == "vllm-neuron":
        return vllm_neuron.server_args(settings, release)
    return vllm.server_args(settings, release)


def server_env(settings: ServeSettings, release: Release) -> dict[str, str]:
    """Environment variables that the engine needs besides the ones for its caches."""
    if release.engine == "vllm-neuron":
        return vllm_neuron.server_env(settings)
    return vllm.server_env(settings)
