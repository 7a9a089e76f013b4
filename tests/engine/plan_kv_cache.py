"""vLLM's own plan of the KV cache: a JSON list of questions on standard input, a list of answers on standard
output.

Runs with the Python of .venv-vllm. Layers are created as in the model classes, from the config alone; groups,
blocks and bytes come from vllm.v1.core.kv_cache_utils, as on a GPU.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

# The answer gets the real standard output; whatever is printed by imports goes to standard error.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # type: ignore[import-not-found]
import vllm.config.vllm  # type: ignore[import-not-found]
from transformers import CONFIG_MAPPING  # type: ignore[import-not-found]
from vllm.distributed.utils import get_pp_indices  # type: ignore[import-not-found]
from vllm.model_executor.models import ModelRegistry  # type: ignore[import-not-found]
from vllm.model_executor.models.config import (  # type: ignore[import-not-found]
    MODELS_CONFIG_MAP,
    MambaModelConfig,
)
from vllm.platforms.interface import Platform  # type: ignore[import-not-found]
from vllm.v1.core import kv_cache_utils  # type: ignore[import-not-found]
from vllm.v1.kv_cache_interface import (  # type: ignore[import-not-found]
    FullAttentionSpec,
    KVCacheConfig,
    MambaSpec,
    MLAAttentionSpec,
    SlidingWindowSpec,
    get_kv_quant_mode,
)
from vllm.v1.kv_cache_layout import KVCacheLayout  # type: ignore[import-not-found]

vllm.config.vllm.set_current_vllm_config = lambda _: contextlib.nullcontext()


def model_class(name: str, **_: Any) -> tuple[Any, str]:
    return ModelRegistry._try_load_model_cls(name), name


ModelRegistry.resolve_model_cls = model_class


class Kernels:
    """An attention backend as on GPUs: blocks in multiples of 16."""

    @staticmethod
    def get_supported_kernel_block_sizes() -> list[int]:
        return [16]

    @staticmethod
    def customize_spec(spec: Any) -> Any:
        return spec


class Gpu(Platform):  # type: ignore[misc]
    """The platform without a device."""

    @classmethod
    def _find_non_ssm_backends(cls, _: Any) -> list[type[Kernels]]:
        return [Kernels]


def settings(question: dict[str, Any]) -> SimpleNamespace:
    """What of a VllmConfig the plan of the cache reads."""
    fields = dict(question["config"])
    hf = CONFIG_MAPPING[fields["model_type"]].from_dict(fields)
    name = fields["architectures"][0]
    tensor = question["tensor"]
    latent = getattr(hf, "kv_lora_rank", None)
    size = latent + hf.qk_rope_head_dim if latent else getattr(hf, "head_dim", None)
    heads = 1 if latent else max(1, hf.num_key_value_heads // tensor)
    model = SimpleNamespace(
        architecture=name,
        hf_config=hf,
        hf_text_config=hf,
        dtype=torch.bfloat16,
        use_mla=bool(latent),
        max_model_len=question["length"],
        original_max_model_len=question["length"],
        get_num_kv_heads=lambda _: heads,
        get_head_size=lambda: size or hf.hidden_size // hf.num_attention_heads,
        model_arch_config=None,
    )
    cache = SimpleNamespace(
        block_size=question["block_size"],
        cache_dtype=question["dtype"],
        enable_prefix_caching=True,
        mamba_cache_mode="none",
        mamba_block_size=None,
        mamba_page_size_padded=None,
        mamba_cache_dtype="auto",
        mamba_ssm_cache_dtype=question["state"],
        num_gpu_blocks_override=None,
        prefix_cache_retention_interval=None,
        kv_cache_dtype_skip_layers=[],
        use_replayssm=False,
        use_kda_recoverssm=False,
        get_resolved_kv_cache_layout=lambda: KVCacheLayout.LBNHC,
    )
    whole = SimpleNamespace(
        model_config=model,
        cache_config=cache,
        parallel_config=SimpleNamespace(
            tensor_parallel_size=tensor,
            pipeline_parallel_size=question["pipeline"],
            decode_context_parallel_size=1,
            prefill_context_parallel_size=1,
        ),
        scheduler_config=SimpleNamespace(
            disable_hybrid_kv_cache_manager=not question["hybrid"],
            enable_chunked_prefill=True,
            async_scheduling=True,
            max_num_batched_tokens=question["batched"],
        ),
        use_v2_model_runner=True,
        attention_config=SimpleNamespace(hisparse_config=None),
        compilation_config=SimpleNamespace(cudagraph_mode=None),
        mamba_config=SimpleNamespace(),
        speculative_config=None,
        num_speculative_tokens=0,
        num_prefill_lookahead_tokens=0,
    )
    real = vllm.config.vllm.VllmConfig
    whole.max_concurrent_batches = real.max_concurrent_batches.fget(whole)
    whole.max_in_flight_tokens = real.max_in_flight_tokens.fget(whole)
    return whole


def layers_of(config: SimpleNamespace) -> dict[str, Any]:
    """The cache of every layer, by name."""
    model, cache = config.model_config, config.cache_config
    hf = model.hf_config
    kinds = getattr(hf, "layer_types", None) or ["full_attention"] * hf.num_hidden_layers
    recurrent = {"linear_attention", "mamba", "hybrid"} & set(kinds)
    if recurrent:
        MambaModelConfig.verify_and_update_config(config)
        if own := MODELS_CONFIG_MAP.get(model.architecture):
            own.verify_and_update_config(config)
        Gpu._align_hybrid_block_size(config, Kernels)
    eight_bit = cache.cache_dtype != "auto"
    attention = {
        "block_size": cache.block_size,
        "num_kv_heads": model.get_num_kv_heads(None),
        "head_size": model.get_head_size(),
        "dtype": torch.uint8 if eight_bit else model.dtype,
        "kv_quant_mode": get_kv_quant_mode(cache.cache_dtype),
    }
    packed = {"state_content_bytes": 656} if cache.cache_dtype == "fp8_ds_mla" else {}
    found: dict[str, Any] = {}
    for number, kind in enumerate(kinds):
        at = f"layers.{number}"
        if kind in ("mlp", "moe"):
            continue
        if kind in recurrent:
            owner, _ = model_class(model.architecture)
            found[at] = MambaSpec(
                block_size=cache.mamba_block_size,
                shapes=owner.get_mamba_state_shape_from_config(config),
                dtypes=owner.get_mamba_state_dtype_from_config(config),
                page_size_padded=cache.mamba_page_size_padded,
                mamba_cache_mode=cache.mamba_cache_mode,
            )
        elif model.use_mla:
            found[at] = MLAAttentionSpec(**attention, cache_dtype_str=cache.cache_dtype, **packed)
            if getattr(hf, "index_head_dim", None):
                width = hf.index_head_dim + hf.index_head_dim // 128 * 4
                found[f"{at}.indexer"] = MLAAttentionSpec(
                    block_size=cache.block_size, num_kv_heads=1, head_size=width, dtype=torch.uint8
                )
        elif kind == "sliding_attention":
            found[at] = SlidingWindowSpec(**attention, sliding_window=hf.sliding_window)
        else:
            found[at] = FullAttentionSpec(**attention)
    return found


def plan(question: dict[str, Any]) -> list[dict[str, Any]]:
    """What each pipeline stage gets."""
    config = settings(question)
    specs = layers_of(config)
    groups = kv_cache_utils.get_kv_cache_groups(config, dict(specs))
    answer = []
    for stage in range(question["pipeline"]):
        first, end = get_pp_indices(
            config.model_config.hf_config.num_hidden_layers, stage, question["pipeline"]
        )
        here = {name: spec for name, spec in specs.items() if first <= int(name.split(".")[1]) < end}
        mine = kv_cache_utils._project_kv_cache_groups_to_worker(groups, here)
        planned: KVCacheConfig = kv_cache_utils.get_kv_cache_config_from_groups(
            config, mine, question["available"]
        )
        answer.append(
            {
                "groups": sorted(
                    sum(not name.endswith(".indexer") for name in group.layer_names) for group in mine
                ),
                "block_size": max(group.kv_cache_spec.block_size for group in mine),
                "bytes_per_block": kv_cache_utils._pool_bytes_per_block(config, mine),
                "needed": kv_cache_utils._max_memory_usage_bytes_from_groups(config, mine),
                "blocks": planned.num_blocks,
                "tokens": kv_cache_utils.get_kv_cache_capacity(config, planned)[0],
            }
        )
    return answer


json.dump([plan(question) for question in json.load(sys.stdin)], answers)
