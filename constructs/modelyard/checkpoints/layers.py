"""Layers of a model (attention, feed-forward and state), from its fields and its family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from modelyard.checkpoints.fields import Fields, UnreadableConfig
from modelyard.checkpoints.shape import Experts, LatentAttention, LayerType, LinearAttention

_LAYER_TYPES: Mapping[str, LayerType] = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mlp": "none",
    "moe": "none",
}
# Letters of Nemotron-H's hybrid_override_pattern.
_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def biases(fields: Fields, family: Mapping[str, Any]) -> dict[str, bool]:
    """Which projections have biases: fixed by the class, or by a field that the class names."""
    stated: Mapping[str, bool | str] = family.get("bias", {})
    return {part: bool(fields.flag(says)) if isinstance(says, str) else says for part, says in stated.items()}


def pooled_vectors(fields: Fields, family: Mapping[str, Any]) -> int:
    """Vectors of hidden size that only encoders have: token types, the pooler's matrix and bias, one row per
    label."""
    if "pooled" not in family:
        return 0
    listed = fields.get("id2label")
    labels = len(listed) if isinstance(listed, Mapping) else fields.number("num_labels", 2)
    classes = labels if "labels" in family["pooled"] else 0
    return fields.number("type_vocab_size", 1) + fields.number("hidden_size") + 1 + classes


def query_key_norm(fields: Fields, family: Mapping[str, Any]) -> Literal["", "head", "wide"]:
    kind, _, condition = str(family.get("queryKeyNorm", "")).partition(" if ")
    if condition and not fields.flag(condition):
        return ""
    return "wide" if kind == "wide" else "head" if kind == "head" else ""


def _pattern(fields: Fields, family: Mapping[str, Any]) -> list[str]:
    """The kind of each layer, in families where a layer is either a mixer or a feed-forward (Nemotron-H)."""
    if not family.get("interleaved"):
        return []
    listed = fields.get("layers_block_type") or list(str(fields.get("hybrid_override_pattern") or ""))
    return [_PATTERN.get(str(kind), str(kind)) for kind in listed]


def dense_layers(fields: Fields, family: Mapping[str, Any]) -> frozenset[int] | None:
    pattern = _pattern(fields, family)
    return frozenset(i for i, kind in enumerate(pattern) if kind == "mlp") if pattern else None


def dense_width(fields: Fields, family: Mapping[str, Any], moe: Experts | None) -> int:
    width = fields.number(str(family.get("mlpWidth", "intermediate_size")))
    return width or (moe.intermediate if moe else 0)


def expert_counts(family: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that can hold the number of experts, the family's own first."""
    own = family.get("experts", {}).get("count", "num_experts")
    return tuple(dict.fromkeys((own, "num_experts", "n_routed_experts")))


def read_experts(fields: Fields, family: Mapping[str, Any], layers: int) -> Experts | None:
    names = family.get("experts", {})
    count = next((number for name in expert_counts(family) if (number := fields.number(name))), 0)
    if not count:
        return None
    width = fields.number("moe_intermediate_size") or fields.number(
        names.get("width", "moe_intermediate_size")
    )
    lacking: tuple[str, ...] = () if width else (names.get("width", "moe_intermediate_size"),)
    lacking += () if fields.states("num_experts_per_tok") else ("num_experts_per_tok",)
    if lacking:
        raise UnreadableConfig(f"config.json lacks {', '.join(lacking)}", lacking)
    shared = fields.number(names.get("sharedWidth", "shared_expert_intermediate_size"))
    if not shared:
        several = fields.number("n_shared_experts") or fields.number(names.get("shared", "n_shared_experts"))
        shared = several * width
    return Experts(
        count=count,
        per_token=fields.number("num_experts_per_tok", 1),
        intermediate=width,
        shared_intermediate=shared,
        layers=_expert_layers(fields, family, layers),
        bias=bool(names.get("bias", False)),
        shared_gate=bool(shared and names.get("sharedGate", False)),
        latent=fields.number("moe_latent_size"),
    )


def _expert_layers(fields: Fields, family: Mapping[str, Any], layers: int) -> frozenset[int]:
    names = family.get("experts", {})
    if pattern := _pattern(fields, family):
        return frozenset(i for i, kind in enumerate(pattern) if kind == "moe")
    listed = fields.get("mlp_layer_types")
    if isinstance(listed, list) and len(listed) == layers:
        return frozenset(i for i, kind in enumerate(listed) if kind == "sparse")
    first = fields.number(names.get("first", "first_k_dense_replace"))
    last = fields.number(names["last"], layers - 1) if "last" in names else layers - 1
    step = fields.number(names.get("step", "decoder_sparse_step"), 1) or 1
    dense = set(fields.get("mlp_only_layers") or ())
    return frozenset(
        i for i in range(first, min(last, layers - 1) + 1) if (i + 1) % step == 0 and i not in dense
    )


def read_latent(fields: Fields) -> LatentAttention | None:
    if not fields.get("kv_lora_rank"):
        return None
    return LatentAttention(
        kv_rank=fields.number("kv_lora_rank"),
        query_rank=fields.number("q_lora_rank"),
        rope_dim=fields.number("qk_rope_head_dim", 64),
        nope_dim=fields.number("qk_nope_head_dim", 128),
        value_dim=fields.number("v_head_dim", 128),
        index_heads=fields.number("index_n_heads"),
        index_dim=fields.number("index_head_dim"),
    )


def read_linear(fields: Fields, family: Mapping[str, Any]) -> LinearAttention | None:
    kind = family.get("linear")
    if kind is None:
        return None
    if kind == "delta":
        return LinearAttention(
            kind="delta",
            key_heads=fields.number("linear_num_key_heads"),
            value_heads=fields.number("linear_num_value_heads"),
            key_dim=fields.number("linear_key_head_dim"),
            value_dim=fields.number("linear_value_head_dim"),
            conv_kernel=fields.number("linear_conv_kernel_dim", 4),
            state_bytes=_state_bytes(fields, family),
        )
    if kind == "kimi":
        own = fields.get("linear_attn_config") or {}
        heads, dim = (
            int(own.get("num_heads", fields.number("num_attention_heads"))),
            int(own.get("head_dim", 128)),
        )
        return LinearAttention("kimi", heads, heads, dim, dim, int(own.get("short_conv_kernel_size", 4)), 4)
    return LinearAttention(
        kind="mamba2",
        key_heads=fields.number("mamba_n_groups") or fields.number("n_groups", 1),
        value_heads=fields.number("mamba_n_heads") or fields.number("mamba_num_heads"),
        key_dim=fields.number("mamba_d_state") or fields.number("ssm_state_size", 128),
        value_dim=fields.number("mamba_d_head") or fields.number("mamba_head_dim", 64),
        conv_kernel=fields.number("mamba_d_conv") or fields.number("conv_kernel", 4),
        state_bytes=_state_bytes(fields, family),
    )


def _state_bytes(fields: Fields, family: Mapping[str, Any]) -> int:
    """Bytes per number of recurrent state: 16 bit, unless the engine's class of the family reads the
    config."""
    if "stateBytes" not in family:
        return 2
    stated = fields.get("mamba_ssm_cache_dtype") or fields.get("mamba_ssm_dtype")
    return int(family["stateBytes"]) if stated is None else 4 if stated == "float32" else 2


def read_layer_types(
    fields: Fields, family: Mapping[str, Any], layers: int, linear: LinearAttention | None
) -> tuple[LayerType, ...]:
    """One entry per layer: from the config's list, or the family's pattern."""
    if family.get("encoder"):
        encoder: LayerType = "encoder"
        return (encoder,) * layers
    listed = _pattern(fields, family) or fields.get("layer_types") or fields.get("layers_block_type")
    if isinstance(listed, list) and len(listed) == layers:
        return tuple(_LAYER_TYPES[str(kind)] for kind in listed)
    if linear and linear.kind == "kimi":
        own = fields.get("linear_attn_config")
        listed = own["full_attn_layers"] if isinstance(own, Mapping) else [*range(4, layers + 1, 4), layers]
        return tuple("full" if i + 1 in listed else "linear" for i in range(layers))
    if linear:
        interval = fields.number("full_attention_interval", 4)
        return tuple("full" if (i + 1) % interval == 0 else "linear" for i in range(layers))
    rule, _, argument = str(family.get("window", "none")).partition(" ")
    if rule == "chunked" and fields.get("attention_chunk_size"):
        return tuple("full" if (i + 1) % int(argument) == 0 else "chunked" for i in range(layers))
    window = fields.get("sliding_window")
    flagged = rule == "flagged" and not fields.get("use_sliding_window")
    full: LayerType = "full"
    sliding: LayerType = "sliding"
    if not window or rule == "none" or flagged:
        return (full,) * layers
    if rule in ("even", "pattern"):
        stated = fields.get("sliding_window_pattern") if rule == "pattern" else 2
        every = len(stated) if isinstance(stated, str) else int(stated or argument)
        return tuple(full if (i + 1) % every == 0 else sliding for i in range(layers))
    return (sliding,) * layers


def rope_bytes(fields: Fields, family: Mapping[str, Any], outer: Mapping[str, Any], head_dim: int) -> int:
    """Cosine and sine tables up to the longest position (vLLM, layers/rotary_embedding), in 16 bit unless the
    family says otherwise."""
    if (
        "positions" in family
        or not family.get("rope", True)
        or fields.get("position_embedding_type") == "nope"
    ):
        return 0
    positions = fields.number("max_position_embeddings")
    wide = fields.number("global_head_dim")  # tables of the whole width, whatever part is rotated (Gemma 4)
    width = (
        wide
        or fields.number("qk_rope_head_dim")
        or round(head_dim * float(fields.get("partial_rotary_factor") or 1))
    )
    scaling = fields.get("rope_scaling") or fields.get("rope_parameters") or {}
    scaling = scaling.get("full_attention", scaling)  # newer configs have one entry per layer kind
    kind = str(scaling.get("rope_type") or scaling.get("type") or "default")
    factor = float(scaling.get("factor") or 1)
    length = float(positions)
    if kind in ("linear", "ntk"):
        length = positions * factor
    elif "yarn" in kind:
        length = float(scaling.get("original_max_position_embeddings") or positions / factor) * factor
    elif kind == "longrope":
        length = positions + float(
            scaling.get("original_max_position_embeddings")
            or fields.number("original_max_position_embeddings")
        )
    if outer.get("mrope"):
        length *= 4
    local = positions * (head_dim if wide else width) if family.get("localRope") else 0
    return round((length * width + local) * int(family.get("rotaryBytes") or 2))
