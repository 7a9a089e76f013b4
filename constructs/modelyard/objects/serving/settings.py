"""The plan in the engine's terms: the input of a server's command line."""

from __future__ import annotations

from typing import Any

from modelyard.engines import Ranks, ServeSettings
from modelyard.memory.loaded_model import images_per_prompt
from modelyard.objects.pods.ports import ENGINE_PORT, PORT
from modelyard.objects.serving.weights import LOCAL_PATH, cache_path, gguf_files, weights_path
from modelyard.planning import ModelPlan
from modelyard.spec.weights import SpeculativeDecoding

# Upper bound of the memory fraction for weights and cache, for engines with such a setting: never the last
# few percent.
_MOST_STATIC = 0.92


def serve_settings(plan: ModelPlan, otlp_endpoint: str | None = None) -> ServeSettings:
    """Settings of every server of `plan`, or of its leaders if a replica has several pods; `otlp_endpoint`:
    the environment's trace collector."""
    model, serving, ledger = plan.model, plan.serving, plan.serving.ledger
    offload = model.features.kv_offload
    split = serving.topology.split
    return ServeSettings(
        model_path=model_path(plan),
        served_names=plan.served_names,
        max_model_len=serving.max_model_len,
        max_num_seqs=serving.max_num_seqs,
        max_num_batched_tokens=serving.max_num_batched_tokens,
        gpu_memory_utilization=model.engine.gpu_memory_utilization,
        ranks=Ranks(split.tensor, split.pipeline, split.data, split.expert, serving.nodes),
        task=model.task,
        dtype=serving.dtype,
        kv_cache_dtype=model.engine.kv_cache_dtype,
        quantization=model.engine.quantization,
        enforce_eager=model.engine.enforce_eager,
        prefix_caching=model.features.prefix_caching,
        tool_parser=plan.parsers.tools if model.features.tools else None,
        reasoning_parser=plan.parsers.reasoning if model.features.reasoning else None,
        structured_outputs=model.features.structured_outputs,
        images_per_prompt=images_per_prompt(model, serving.arch),
        videos_per_prompt=model.features.videos_per_prompt or 0,
        adapters={
            adapter.name: _on_disk(plan, cache_path(adapter.uri, adapter.revision))
            for adapter in model.adapters
        },
        max_lora_rank=max((adapter.rank for adapter in model.adapters), default=16),
        speculative=_speculative(plan, model.speculative_decoding),
        kv_offload_gib=offload.size_gib if offload else 0,
        kv_offload_backend=offload.backend if offload else "native",
        kv_role=plan.role,
        sleep=model.features.sleep,
        trust_remote_code=model.model.trust_remote_code is not None,
        load=plan.load_strategy,
        static_share=min(_MOST_STATIC, (ledger.weights + ledger.kv_cache).in_bytes / ledger.total.in_bytes),
        threads=serving.count if serving.on_cpu else 0,
        gpu_layers=serving.gpu_layers,
        drain_seconds=model.drain,
        port=engine_port(plan),
        api_key=model.access.api_key is not None,
        otlp_endpoint=otlp_endpoint if plan.traced else None,
        extra=model.engine.args,
    )


def engine_port(plan: ModelPlan) -> int:
    """The engine's port: a routing sidecar in front of it takes the pod's own port."""
    return (plan.runner.engine_port or ENGINE_PORT) if plan.role == "decode" else PORT


def model_path(plan: ModelPlan) -> str:
    """Path of the server's weights: a folder, a GGUF file, or a bucket."""
    weights = plan.model.model
    folder = _on_disk(plan, weights_path(weights.uri, weights.revision, gguf_files(weights.file)))
    return f"{folder}/{weights.file}" if weights.file else folder


def _on_disk(plan: ModelPlan, path: str) -> str:
    """Path of the copy on the node's local disk, if the model is copied there."""
    return f"{LOCAL_PATH}{path}" if plan.model.cache_strategy == "nvme" else path


def _speculative(plan: ModelPlan, drafts: SpeculativeDecoding | None) -> dict[str, Any] | None:
    if drafts is None:
        return None
    method = "draft_model" if drafts.method == "draft" else drafts.method
    settings: dict[str, Any] = {"method": method, "num_speculative_tokens": drafts.tokens}
    if drafts.method == "ngram":
        settings["prompt_lookup_max"] = drafts.prompt_lookup_max
    if drafts.model:
        settings["model"] = _on_disk(plan, weights_path(drafts.model.uri, drafts.model.revision))
    return settings
