"""Settings of one server's command line, decided by the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Task = Literal["generate", "embed", "rerank"]
KvRole = Literal["both", "prefill", "decode"]


@dataclass(frozen=True)
class Ranks:
    """How a replica is split. `tensor` counts logical cores: one per GPU, several per Neuron device. `nodes`:
    pods per replica."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False
    nodes: int = 1

    @property
    def data_per_node(self) -> int:
        """Data-parallel ranks in one pod."""
        return max(1, self.data // self.nodes)


@dataclass(frozen=True)
class ServeSettings:
    """Settings of one server; lengths in tokens, times in seconds, memory in GiB.

    `load`: how weights are read: vLLM's safetensors strategy, or `stream` from S3. `threads` and
    `gpu_layers`: for llama-server. `kv_role`: `prefill` and `decode` transfer KV blocks, `both` keeps them.
    `static_share`: share of accelerator memory for weights and KV cache together.
    """

    model_path: str
    served_names: tuple[str, ...]
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    ranks: Ranks = Ranks()
    task: Task = "generate"
    dtype: str = "auto"
    kv_cache_dtype: str = "auto"
    quantization: str = "auto"
    enforce_eager: bool = False
    prefix_caching: bool = True
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    structured_outputs: str = "auto"
    images_per_prompt: int | None = None
    videos_per_prompt: int = 0
    adapters: Mapping[str, str] = field(default_factory=dict)
    max_lora_rank: int = 16
    speculative: Mapping[str, Any] | None = None
    kv_offload_gib: int = 0
    kv_offload_backend: str = "native"
    kv_role: KvRole = "both"
    sleep: bool = False
    trust_remote_code: bool = False
    load: str = "lazy"
    static_share: float = 0.8
    threads: int = 0
    gpu_layers: int | None = None
    drain_seconds: int = 60
    port: int = 8000
    api_key: bool = False
    otlp_endpoint: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
