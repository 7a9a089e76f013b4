"""A small config of every family in transformers, with the keys of published configs."""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]

# No two sizes are alike, so that a formula that takes one for another is found out.
_TEXT: Config = {
    "hidden_size": 320,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 736,
    "vocab_size": 2111,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "pad_token_id": 0,
}
_WIDE_HEADS: Config = {"head_dim": 48}
_BIASES: Config = {"attention_bias": True, "mlp_bias": True}
_EXPERTS: Config = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 160}
_LOCAL_EXPERTS: Config = {"num_local_experts": 8, "num_experts_per_tok": 2}
_ROUTED_EXPERTS: Config = {
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 160,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
_LATENT: Config = {
    "kv_lora_rank": 64,
    "q_lora_rank": 96,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 40,
    "num_key_value_heads": 8,
}
_INDEXER: Config = {"index_topk": 64, "index_head_dim": 32, "index_n_heads": 4}
_DELTA: Config = {
    "linear_num_value_heads": 8,
    "linear_num_key_heads": 4,
    "linear_key_head_dim": 24,
    "linear_value_head_dim": 40,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 3,
}
_MAMBA: Config = {
    "mamba_n_heads": 16,
    "mamba_d_head": 40,
    "mamba_d_state": 64,
    "mamba_n_groups": 2,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
}
_NEMOTRON_H: Config = {
    "mamba_num_heads": 16,
    "mamba_head_dim": 40,
    "ssm_state_size": 64,
    "n_groups": 2,
    "conv_kernel": 4,
}


def _text(architecture: str, model_type: str, *parts: Config, **fields: Any) -> Config:
    config = {"architectures": [architecture], "model_type": model_type, **_TEXT}
    for part in (*parts, fields):
        config |= part
    return config


def _vision(
    architecture: str, model_type: str, text: str, vision: Config, *parts: Config, **fields: Any
) -> Config:
    inner = {
        "model_type": text,
        **{name: value for name, value in _TEXT.items() if name != "tie_word_embeddings"},
    }
    for part in parts:
        inner |= part
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "tie_word_embeddings": False,
        "text_config": inner,
        "vision_config": vision,
        **fields,
    }


_ENCODER: Config = {
    "hidden_size": 96,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "intermediate_size": 224,
    "patch_size": 14,
    "image_size": 112,
}
_QWEN_TOWER: Config = {
    "depth": 5,
    "hidden_size": 96,
    "num_heads": 4,
    "intermediate_size": 224,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 320,
}
_POSITIONS: Config = {"num_position_embeddings": 256}

_READER: Config = {"num_key_value_heads": 8, "type_vocab_size": 2, "id2label": {0: "a", 1: "b", 2: "c"}}

_GEMMA_4: Config = {
    "head_dim": 48,
    "global_head_dim": 72,
    "attention_k_eq_v": False,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "sliding_window": 512,
    "tie_word_embeddings": True,
}
_GEMMA_4_EXPERTS: Config = {
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 2,
    "moe_intermediate_size": 160,
}

TEXT: tuple[Config, ...] = (
    _text("BertModel", "bert", _READER),
    _text("BertForSequenceClassification", "bert", _READER),
    _text("XLMRobertaModel", "xlm-roberta", _READER),
    _text("XLMRobertaForSequenceClassification", "xlm-roberta", _READER),
    _text("ModernBertModel", "modernbert", num_key_value_heads=8),
    _text("NomicBertModel", "nomic_bert", _READER),
    _text("LlamaForCausalLM", "llama", _WIDE_HEADS),
    _text("LlamaForCausalLM", "llama", _BIASES, tie_word_embeddings=True),
    _text("MistralForCausalLM", "mistral", _WIDE_HEADS),
    _text("MistralModel", "mistral", _WIDE_HEADS),
    _text("Ministral3ForCausalLM", "ministral3", _WIDE_HEADS),
    _text("Mistral4ForCausalLM", "mistral4", _ROUTED_EXPERTS, _LATENT),
    _text("MixtralForCausalLM", "mixtral", _LOCAL_EXPERTS),
    _text("Qwen2ForCausalLM", "qwen2"),
    _text("Qwen2MoeForCausalLM", "qwen2_moe", _EXPERTS, shared_expert_intermediate_size=192),
    _text(
        "Qwen2MoeForCausalLM",
        "qwen2_moe",
        _EXPERTS,
        shared_expert_intermediate_size=192,
        mlp_only_layers=[1],
        decoder_sparse_step=2,
        qkv_bias=False,
    ),
    _text("Qwen3ForCausalLM", "qwen3", _WIDE_HEADS),
    _text("Qwen3ForCausalLM", "qwen3", _WIDE_HEADS, attention_bias=True),
    _text("Qwen3MoeForCausalLM", "qwen3_moe", _EXPERTS, _WIDE_HEADS),
    _text(
        "Qwen3NextForCausalLM",
        "qwen3_next",
        _EXPERTS,
        _DELTA,
        _WIDE_HEADS,
        shared_expert_intermediate_size=192,
    ),
    _text("Qwen3_5ForCausalLM", "qwen3_5_text", _DELTA, _WIDE_HEADS),
    _text(
        "Qwen3_5MoeForCausalLM",
        "qwen3_5_moe_text",
        _EXPERTS,
        _DELTA,
        _WIDE_HEADS,
        shared_expert_intermediate_size=192,
    ),
    _text("GemmaForCausalLM", "gemma", _WIDE_HEADS, tie_word_embeddings=True),
    _text("Gemma2ForCausalLM", "gemma2", _WIDE_HEADS, tie_word_embeddings=True, sliding_window=512),
    _text("Gemma3ForCausalLM", "gemma3_text", _WIDE_HEADS, tie_word_embeddings=True, sliding_window=512),
    _text("Gemma4ForCausalLM", "gemma4_text", _GEMMA_4, num_experts=None),
    _text("PhiForCausalLM", "phi", num_key_value_heads=8),
    _text("Phi3ForCausalLM", "phi3"),
    _text("GraniteForCausalLM", "granite"),
    _text("GraniteForCausalLM", "granite", _BIASES),
    _text("GraniteMoeForCausalLM", "granitemoe", _LOCAL_EXPERTS),
    _text("GraniteMoeSharedForCausalLM", "granitemoeshared", _LOCAL_EXPERTS, shared_intermediate_size=192),
    _text(
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        _LOCAL_EXPERTS,
        _MAMBA,
        shared_intermediate_size=192,
        layer_types=["mamba", "mamba", "attention", "mamba", "mamba", "mamba"],
        position_embedding_type="nope",
    ),
    _text(
        "GraniteMoeHybridForCausalLM",
        "granitemoehybrid",
        _MAMBA,
        num_local_experts=0,
        num_experts_per_tok=0,
        shared_intermediate_size=736,
        layer_types=["mamba", "mamba", "attention", "mamba", "mamba", "mamba"],
    ),
    _text("Starcoder2ForCausalLM", "starcoder2", tie_word_embeddings=True),
    _text(
        "OPTForCausalLM",
        "opt",
        word_embed_proj_dim=320,
        ffn_dim=736,
        num_key_value_heads=8,
        tie_word_embeddings=True,
    ),
    _text("GPTNeoXForCausalLM", "gpt_neox", num_key_value_heads=8),
    _text("StableLmForCausalLM", "stablelm"),
    _text("StableLmForCausalLM", "stablelm", use_qkv_bias=True, qk_layernorm=True),
    _text("NemotronForCausalLM", "nemotron", _WIDE_HEADS),
    _text("ArceeForCausalLM", "arcee", _WIDE_HEADS),
    _text("ApertusForCausalLM", "apertus", hidden_act="xielu"),
    _text("DeepseekV2ForCausalLM", "deepseek_v2", _ROUTED_EXPERTS, _LATENT),
    _text("DeepseekV2ForCausalLM", "deepseek_v2", _ROUTED_EXPERTS, _LATENT, q_lora_rank=None),
    _text("DeepseekV3ForCausalLM", "deepseek_v3", _ROUTED_EXPERTS, _LATENT),
    _text("DeepseekV32ForCausalLM", "deepseek_v32", _ROUTED_EXPERTS, _LATENT, _INDEXER),
    _text("Glm4MoeLiteForCausalLM", "glm4_moe_lite", _ROUTED_EXPERTS, _LATENT),
    _text("GlmMoeDsaForCausalLM", "glm_moe_dsa", _ROUTED_EXPERTS, _LATENT, _INDEXER),
    _text(
        "KimiLinearForCausalLM",
        "kimi_linear",
        _EXPERTS,
        _LATENT,
        q_lora_rank=None,
        num_shared_experts=1,
        first_k_dense_replace=1,
        num_expert_group=1,
        linear_attn_config={
            "full_attn_layers": [3, 6],
            "kda_layers": [1, 2, 4, 5],
            "head_dim": 24,
            "num_heads": 8,
            "short_conv_kernel_size": 4,
        },
    ),
    _text(
        "Exaone4ForCausalLM",
        "exaone4",
        sliding_window=512,
        layer_types=[*["sliding_attention"] * 3, "full_attention", *["sliding_attention"] * 2],
    ),
    _text("MiniMaxM2ForCausalLM", "minimax_m2", _LOCAL_EXPERTS, _WIDE_HEADS, use_qk_norm=True),
    _text("GptOssForCausalLM", "gpt_oss", _LOCAL_EXPERTS, _WIDE_HEADS, sliding_window=128),
    _text(
        "Llama4ForCausalLM",
        "llama4_text",
        _LOCAL_EXPERTS,
        _WIDE_HEADS,
        intermediate_size_mlp=1088,
        interleave_moe_layer_step=2,
        attention_chunk_size=512,
    ),
    _text("GlmForCausalLM", "glm", _WIDE_HEADS, attention_bias=True),
    _text("Glm4ForCausalLM", "glm4", _WIDE_HEADS, attention_bias=True),
    _text(
        "Glm4MoeForCausalLM", "glm4_moe", _ROUTED_EXPERTS, _WIDE_HEADS, attention_bias=True, use_qk_norm=True
    ),
    _text("Ernie4_5ForCausalLM", "ernie4_5", _WIDE_HEADS),
    _text("Ernie4_5ForCausalLM", "ernie4_5", use_bias=True),
    _text(
        "Ernie4_5_MoeForCausalLM",
        "ernie4_5_moe",
        moe_num_experts=8,
        moe_k=2,
        moe_num_shared_experts=2,
        moe_layer_start_index=1,
        moe_layer_end_index=4,
        moe_layer_interval=1,
        moe_intermediate_size=160,
    ),
    _text("OlmoForCausalLM", "olmo"),
    _text("Olmo2ForCausalLM", "olmo2"),
    _text("Olmo3ForCausalLM", "olmo3", sliding_window=512),
    _text("OlmoeForCausalLM", "olmoe", num_experts=8, num_experts_per_tok=2),
    _text("SmolLM3ForCausalLM", "smollm3"),
    _text("SmolLM3ForCausalLM", "smollm3", _BIASES),
    _text("CohereForCausalLM", "cohere", use_qk_norm=False, tie_word_embeddings=True),
    _text("CohereForCausalLM", "cohere", use_qk_norm=True, tie_word_embeddings=True),
    _text("Cohere2ForCausalLM", "cohere2", _WIDE_HEADS, sliding_window=512, tie_word_embeddings=True),
    _text("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", _WIDE_HEADS, use_qk_norm=True),
    _text(
        "HunYuanMoEV1ForCausalLM",
        "hunyuan_v1_moe",
        _WIDE_HEADS,
        num_experts=8,
        moe_topk=[2] * 6,
        num_shared_expert=[1] * 6,
        use_qk_norm=True,
    ),
    _text("SeedOssForCausalLM", "seed_oss", _WIDE_HEADS, attention_bias=True, attention_out_bias=False),
    _text(
        "AfmoeForCausalLM",
        "afmoe",
        _EXPERTS,
        _WIDE_HEADS,
        num_shared_experts=1,
        num_dense_layers=1,
        sliding_window=512,
    ),
    _text("NemotronHForCausalLM", "nemotron_h", _NEMOTRON_H, _WIDE_HEADS, hybrid_override_pattern="M-M*-M"),
    _text(
        "NemotronHForCausalLM",
        "nemotron_h",
        _NEMOTRON_H,
        _WIDE_HEADS,
        hybrid_override_pattern="MEM*E-",
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_shared_experts=1,
        moe_intermediate_size=160,
        moe_shared_expert_intermediate_size=224,
    ),
    _text(
        "NemotronHForCausalLM",
        "nemotron_h",
        _NEMOTRON_H,
        _WIDE_HEADS,
        hybrid_override_pattern="MEM*EM",
        n_routed_experts=8,
        num_experts_per_tok=2,
        n_shared_experts=1,
        moe_intermediate_size=160,
        moe_shared_expert_intermediate_size=224,
        moe_latent_size=112,
    ),
)

VISION: tuple[Config, ...] = (
    _vision(
        "Gemma4ForConditionalGeneration",
        "gemma4",
        "gemma4_text",
        {
            **_ENCODER,
            "model_type": "gemma4_vision",
            "num_key_value_heads": 4,
            "head_dim": 24,
            "position_embedding_size": 640,
        },
        _GEMMA_4,
        _GEMMA_4_EXPERTS,
        tie_word_embeddings=True,
        audio_config=None,
    ),
    _vision(
        "Gemma3ForConditionalGeneration",
        "gemma3",
        "gemma3_text",
        {"model_type": "siglip_vision_model", "vision_use_head": False, **_ENCODER},
        _WIDE_HEADS,
        tie_word_embeddings=True,
    ),
    _vision(
        "Mistral3ForConditionalGeneration",
        "mistral3",
        "mistral",
        {"model_type": "pixtral", "head_dim": 24, **_ENCODER},
        _WIDE_HEADS,
        spatial_merge_size=2,
        multimodal_projector_bias=False,
        vision_feature_layer=-1,
    ),
    _vision(
        "Mistral3ForConditionalGeneration",
        "mistral3",
        "ministral3",
        {"model_type": "pixtral", "head_dim": 24, **_ENCODER},
        spatial_merge_size=2,
        multimodal_projector_bias=False,
        vision_feature_layer=-1,
    ),
    _vision(
        "LlavaForConditionalGeneration",
        "llava",
        "llama",
        {"model_type": "clip_vision_model", **_ENCODER},
        vision_feature_layer=-1,
    ),
    _vision(
        "LlavaNextForConditionalGeneration",
        "llava_next",
        "granite",
        {"model_type": "siglip_vision_model", "vision_use_head": False, **_ENCODER},
        vision_feature_layer=[-4, -2, -1],
    ),
    _vision(
        "Qwen2VLForConditionalGeneration",
        "qwen2_vl",
        "qwen2_vl_text",
        {"depth": 5, "embed_dim": 96, "hidden_size": 320, "num_heads": 4, "mlp_ratio": 4, "patch_size": 14},
    ),
    _vision(
        "Qwen2_5_VLForConditionalGeneration",
        "qwen2_5_vl",
        "qwen2_5_vl_text",
        {**_QWEN_TOWER, "patch_size": 14},
    ),
    _vision(
        "Qwen3VLForConditionalGeneration",
        "qwen3_vl",
        "qwen3_vl_text",
        {**_QWEN_TOWER, **_POSITIONS, "deepstack_visual_indexes": [1, 3]},
        _WIDE_HEADS,
    ),
    _vision(
        "Qwen3VLMoeForConditionalGeneration",
        "qwen3_vl_moe",
        "qwen3_vl_moe_text",
        {**_QWEN_TOWER, **_POSITIONS, "deepstack_visual_indexes": [1, 3]},
        _WIDE_HEADS,
        _EXPERTS,
    ),
    _vision(
        "Qwen3_5ForConditionalGeneration",
        "qwen3_5",
        "qwen3_5_text",
        {**_QWEN_TOWER, **_POSITIONS, "deepstack_visual_indexes": []},
        _WIDE_HEADS,
        _DELTA,
    ),
    _vision(
        "Qwen3_5MoeForConditionalGeneration",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        {**_QWEN_TOWER, **_POSITIONS, "deepstack_visual_indexes": []},
        _WIDE_HEADS,
        _DELTA,
        _EXPERTS,
        {"shared_expert_intermediate_size": 192},
    ),
    _vision(
        "Glm4vMoeForConditionalGeneration",
        "glm4v_moe",
        "glm4v_moe_text",
        {**_QWEN_TOWER, "patch_size": 14, "image_size": 112},
        _WIDE_HEADS,
        _ROUTED_EXPERTS,
        {"attention_bias": True},
    ),
    _vision(
        "InternVLForConditionalGeneration",
        "internvl",
        "qwen2",
        {"model_type": "internvl_vision", "attention_bias": True, **_ENCODER},
    ),
    _vision(
        "InternVLForConditionalGeneration",
        "internvl",
        "qwen3",
        {
            "model_type": "internvl_vision",
            "attention_bias": False,
            "use_qk_norm": True,
            "norm_type": "rms_norm",
            **_ENCODER,
        },
        _WIDE_HEADS,
    ),
    _vision(
        "MllamaForConditionalGeneration",
        "mllama",
        "mllama_text_model",
        {
            "model_type": "mllama_vision_model",
            "num_global_layers": 2,
            "attention_heads": 4,
            "max_num_tiles": 4,
            "intermediate_layers_indices": [1, 3],
            "vision_output_dim": 288,
            **{key: value for key, value in _ENCODER.items() if key != "num_attention_heads"},
        },
        {"cross_attention_layers": [1, 4]},
    ),
    _vision(
        "Llama4ForConditionalGeneration",
        "llama4",
        "llama4_text",
        {
            "model_type": "llama4_vision_model",
            "projector_input_dim": 144,
            "projector_output_dim": 144,
            "vision_output_dim": 144,
            "pixel_shuffle_ratio": 0.5,
            **_ENCODER,
            "intermediate_size": 384,  # four merged patches, which the adapter takes
        },
        _LOCAL_EXPERTS,
        _WIDE_HEADS,
        {"intermediate_size_mlp": 1088, "interleave_moe_layer_step": 1, "attention_chunk_size": 512},
    ),
)
