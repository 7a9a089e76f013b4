"""From a `config.json` to an architecture: every field read or derived, none guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from modelyard.architecture.families import families, text_family, vision_family
from modelyard.architecture.limits import ROPE_BYTES, WrongNumber, whole_number
from modelyard.architecture.quantization import Quantization, UnknownQuantization, read_quantization
from modelyard.architecture.shape import (
    Architecture,
    Experts,
    LatentAttention,
    LayerType,
    LinearAttention,
    Vision,
)
from modelyard.architecture.vision import MissingVisionFields, read_vision

# vLLM loads a checkpoint in 32 bit only where it is told to (config/model.py, "Downcast for float32 models").
_THIRTY_TWO_BIT = ("float", "float32")
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
# What a vision model's config says of images beside its vision_config.
_OF_IMAGES = ("spatial_merge_size", "vision_feature_layer")
# Letters of Nemotron-H's hybrid_override_pattern.
_PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


class UnreadableConfig(ValueError):
    """A config from which no architecture follows. `missing` names the fields that are not there."""

    def __init__(self, reason: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.missing = missing


@dataclass(frozen=True)
class _Fields:
    """Fields of one config by their usual names; aliases and the family's defaults stand in for absent ones."""

    own: Mapping[str, Any]
    outer: Mapping[str, Any]
    defaults: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)
    """Names in the order in which they were read: the last one is at fault when reading ends."""

    def get(self, name: str) -> Any:
        self.asked.append(name)
        for source in (self.own, self.outer, self.defaults):
            for spelling in (name, *families()["aliases"].get(name, ())):
                if source.get(spelling) is not None:
                    return source[spelling]
        return None

    def number(self, name: str, default: int = 0) -> int:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, list) and value:  # some configs give one number a layer
            return max(whole_number(name, number) for number in value)
        return whole_number(name, value)

    def flag(self, name: str) -> bool | None:
        """Whether the field is true; None where it is absent."""
        value = self.get(name)
        if value is not None and value not in (True, False):
            raise UnreadableConfig(f"config.json: {name} is {_shown(value)}, not true or false")
        return None if value is None else bool(value)

    def states(self, name: str) -> bool:
        """Whether the config names the field, if only to say null."""
        spellings = (name, *families()["aliases"].get(name, ()))
        return any(
            spelling in source for source in (self.own, self.outer, self.defaults) for spelling in spellings
        )


def read_config(
    config: Mapping[str, Any],
    *,
    model_id: str = "",
    quantization: str | None = None,
    dtype: str | None = None,
) -> Architecture:
    """Read a `config.json` of Hugging Face.

    `quantization` and `dtype` are what the engine is told beside it (`--quantization`, `--dtype`).

    Raises:
        UnreadableConfig: fields are missing, or nothing is known of the class, or of the quantization.
    """
    name = _class_of(config)
    outer = vision_family(name)
    inner = config
    if outer:
        key = next(
            (k for k in (outer.get("key"), "text_config", "llm_config", "language_config") if k in config), ""
        )
        inner = config.get(str(key)) or config
        if not isinstance(inner, Mapping):
            raise UnreadableConfig(f"config.json: {key} is {_shown(inner)}, not an object", (str(key),))
    family_name = _family_name(name, outer, inner, config)
    family = text_family(family_name)
    if family is None:
        known = ", ".join((*families()["text"], *families()["vision"]))
        raise UnreadableConfig(
            f"config.json: architectures names {name or 'nothing'}, whose layout is not known; known are {known}",
            ("architectures",) if not name else (),
        )
    fields = _Fields(inner, config, {**family.get("defaults", {}), **(outer or {}).get("defaults", {})})
    required = [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    ]
    if "experts" not in family and not fields.get("moe_intermediate_size"):
        required.append("intermediate_size")
    elif not any(fields.states(name) for name in _expert_counts(family)):
        required.append(_expert_counts(family)[0])
    if missing := tuple(field for field in required if fields.get(field) is None):
        raise UnreadableConfig(f"config.json lacks {', '.join(missing)}", missing)
    try:
        stored = _stored(fields, config, quantization)
        tower = _vision(config, outer, fields)
        found = _architecture(name, model_id, fields, family, outer or {}, stored, tower, dtype)
    except UnreadableConfig:
        raise
    except (UnknownQuantization, MissingVisionFields, WrongNumber) as problem:
        raise UnreadableConfig(f"config.json: {problem}") from problem
    except _STRANGE as problem:
        last = fields.asked[-1]
        raise UnreadableConfig(
            f"config.json: {last} is {_shown(fields.get(last))}, which is not its format"
        ) from problem
    if not 0 <= found.rope_bytes <= ROPE_BYTES:
        raise UnreadableConfig(
            "config.json: rope_scaling and partial_rotary_factor give tables of an impossible size"
        )
    if not found.head_dim:
        raise UnreadableConfig("config.json: head_dim is 0: hidden_size is less than num_attention_heads")
    return found


# What reading raises of a value that has another type than the field.
_STRANGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _class_of(config: Mapping[str, Any]) -> str:
    listed = config.get("architectures") or [""]
    listed = [listed] if isinstance(listed, str) else listed
    if not isinstance(listed, list) or not isinstance(listed[0], str):
        raise UnreadableConfig(
            f"config.json: architectures is {_shown(listed)}, not a list of names", ("architectures",)
        )
    return str(listed[0])


def _expert_counts(family: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that may state the number of experts, the family's own first."""
    own = family.get("experts", {}).get("count", "num_experts")
    return tuple(dict.fromkeys((own, "num_experts", "n_routed_experts")))


def _stored(fields: _Fields, config: Mapping[str, Any], override: str | None) -> Quantization | None:
    """How the checkpoint is quantized, with widths and groups that exist."""
    stated = _quantization_of(fields, config)
    try:
        found = read_quantization(stated, override)
    except UnknownQuantization:
        raise
    except _STRANGE as problem:
        raise UnreadableConfig(
            f"config.json: quantization_config is {_shown(stated)}, which is not its format"
        ) from problem
    for form in (found.format, *(form for _, form in found.rules)) if found else ():
        for name, value, least, most in (
            ("bits", form.bits, 1, 32),
            ("group_size", form.group, 0, 1 << 24),
            ("block", form.block, 0, 1 << 24),
        ):
            if not least <= value <= most:
                raise UnreadableConfig(
                    f"config.json: quantization_config.{name} is {_shown(value)}, not between {least} and {most}"
                )
    return found


def _family_name(
    name: str, outer: Mapping[str, Any] | None, inner: Mapping[str, Any], config: Mapping[str, Any]
) -> str:
    if outer is None:
        return name
    if outer["text"] != "model_type":
        return str(outer["text"])
    kind = str(inner.get("text_model_type") or inner.get("model_type") or "")
    if inner is config and "llm:" in kind:
        kind = kind.partition("llm:")[2].strip(" )")
    own = _class_of(inner) if inner is not config else ""
    if text_family(str(own)):
        return str(own)
    return str(families()["modelTypes"].get(kind) or outer.get("usual") or kind)


def _quantization_of(fields: _Fields, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = (
        config.get("quantization_config")
        or fields.get("quantization_config")
        or fields.get("compression_config")
    )
    return found if isinstance(found, Mapping) else None


def _vision(config: Mapping[str, Any], outer: Mapping[str, Any] | None, fields: _Fields) -> Vision | None:
    if outer is None:
        return None
    tower = config.get("vision_config") or config.get("vision")
    if not tower:
        if fields.own is config:  # the language model's fields alone: its weights are what can be counted
            return None
        raise MissingVisionFields("vision_config")
    if not isinstance(tower, Mapping):
        raise UnreadableConfig(f"config.json: vision_config is {_shown(tower)}, not an object")
    beside = {key: config[key] for key in _OF_IMAGES if key in config}
    return read_vision({**beside, **tower}, outer, fields.number("hidden_size"))


def _architecture(
    name: str,
    model_id: str,
    fields: _Fields,
    family: Mapping[str, Any],
    outer: Mapping[str, Any],
    quantization: Any,
    vision: Vision | None,
    dtype: str | None,
) -> Architecture:
    number = fields.number
    heads, layers = number("num_attention_heads"), number("num_hidden_layers")
    kv_heads = number("num_key_value_heads", heads)
    head_dim = number("head_dim") or number("hidden_size") // heads
    moe = _experts(fields, family, layers)
    bias = _biases(fields, family)
    tied = fields.flag("tie_word_embeddings")
    linear = _linear(fields, family, head_dim)
    types = _layer_types(fields, family, layers, linear)
    return Architecture(
        model_id=model_id,
        architecture=name,
        model_type=str(fields.outer.get("model_type") or fields.get("model_type") or ""),
        hidden=number("hidden_size"),
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=_dense_width(fields, family, moe),
        vocab=number("vocab_size"),
        tied_embeddings=bool(family.get("tied", False)) if tied is None else bool(tied),
        max_position=number("max_position_embeddings"),
        layer_types=types,
        window=number("attention_chunk_size") if "chunked" in types else number("sliding_window"),
        mlp_matrices=2 if family.get("mlp") == "plain" else 3,
        norms_per_layer=int(family.get("norms", 2)),
        final_norms=int(family.get("finalNorms", 1)),
        query_key_norm=_query_key_norm(fields, family),
        attention_bias=bias.get("attention", False),
        output_bias=bias.get("output", False),
        mlp_bias=bias.get("mlp", False),
        head_bias=bias.get("head", False),
        sinks=bool(family.get("sinks")),
        output_gate=bool(family.get("outputGate")),
        dense_layers=_dense_layers(fields, family),
        position_table=number("max_position_embeddings") + int(family["positions"])
        if "positions" in family
        else 0,
        rope_bytes=_rope_bytes(fields, family, outer, head_dim),
        latent=_latent(fields),
        moe=moe,
        linear=linear,
        vision=vision,
        mtp_layers=number("num_nextn_predict_layers")
        or number("mtp_num_hidden_layers")
        or number("num_mtp_modules"),
        bytes_per_parameter=4 if dtype in _THIRTY_TWO_BIT else 2,
        quantization=quantization,
        tested=bool(family.get("tested", False)),
    )


def _biases(fields: _Fields, family: Mapping[str, Any]) -> dict[str, bool]:
    """Which projections have biases: the class fixes it, or names the field that says so."""
    stated: Mapping[str, bool | str] = family.get("bias", {})
    return {part: bool(fields.flag(says)) if isinstance(says, str) else says for part, says in stated.items()}


def _query_key_norm(fields: _Fields, family: Mapping[str, Any]) -> Literal["", "head", "wide"]:
    kind, _, condition = str(family.get("queryKeyNorm", "")).partition(" if ")
    if condition and not fields.flag(condition):
        return ""
    return "wide" if kind == "wide" else "head" if kind == "head" else ""


def _pattern(fields: _Fields, family: Mapping[str, Any]) -> list[str]:
    """What each layer is, where a layer is a mixer or a feed-forward and not both (Nemotron-H)."""
    if not family.get("interleaved"):
        return []
    listed = fields.get("layers_block_type") or list(str(fields.get("hybrid_override_pattern") or ""))
    return [_PATTERN.get(str(kind), str(kind)) for kind in listed]


def _dense_layers(fields: _Fields, family: Mapping[str, Any]) -> frozenset[int] | None:
    pattern = _pattern(fields, family)
    return frozenset(i for i, kind in enumerate(pattern) if kind == "mlp") if pattern else None


def _dense_width(fields: _Fields, family: Mapping[str, Any], moe: Experts | None) -> int:
    width = fields.number(str(family.get("mlpWidth", "intermediate_size")))
    return width or (moe.intermediate if moe else 0)


def _experts(fields: _Fields, family: Mapping[str, Any], layers: int) -> Experts | None:
    names = family.get("experts", {})
    count = (
        fields.number(names.get("count", "num_experts"))
        or fields.number("num_experts")
        or fields.number("n_routed_experts")
    )
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


def _expert_layers(fields: _Fields, family: Mapping[str, Any], layers: int) -> frozenset[int]:
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


def _latent(fields: _Fields) -> LatentAttention | None:
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


def _linear(fields: _Fields, family: Mapping[str, Any], head_dim: int) -> LinearAttention | None:
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


def _state_bytes(fields: _Fields, family: Mapping[str, Any]) -> int:
    """Of one number of a recurrent state: 16 bit, unless the engine's class for the family reads what the config says."""
    if "stateBytes" not in family:
        return 2
    stated = fields.get("mamba_ssm_cache_dtype") or fields.get("mamba_ssm_dtype")
    return int(family["stateBytes"]) if stated is None else 4 if stated == "float32" else 2


def _layer_types(
    fields: _Fields, family: Mapping[str, Any], layers: int, linear: LinearAttention | None
) -> tuple[LayerType, ...]:
    """One entry a layer: what the config lists, or the family's pattern."""
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


def _rope_bytes(fields: _Fields, family: Mapping[str, Any], outer: Mapping[str, Any], head_dim: int) -> int:
    """Tables of cosines and sines in 16 bit, as long as the longest position (vLLM, layers/rotary_embedding)."""
    if (
        "positions" in family
        or not family.get("rope", True)
        or fields.get("position_embedding_type") == "nope"
    ):
        return 0
    positions = fields.number("max_position_embeddings")
    width = fields.number("qk_rope_head_dim") or round(
        head_dim * float(fields.get("partial_rotary_factor") or 1)
    )
    scaling = fields.get("rope_scaling") or fields.get("rope_parameters") or {}
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
    local = positions if family.get("localRope") else 0
    return round((length + local) * width * 2)
