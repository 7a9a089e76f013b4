"""Reads a `config.json` into an architecture: every field is read or derived, none guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.checkpoints.families import families, text_family, vision_family
from modelyard.checkpoints.fields import STRANGE, Fields, UnreadableConfig
from modelyard.checkpoints.layers import (
    biases,
    dense_layers,
    dense_width,
    expert_counts,
    pooled_vectors,
    query_key_norm,
    read_experts,
    read_latent,
    read_layer_types,
    read_linear,
    rope_bytes,
)
from modelyard.checkpoints.limits import ROPE_BYTES, WrongNumber, shown
from modelyard.checkpoints.quantization import Quantization, UnknownQuantization, read_quantization
from modelyard.checkpoints.shape import Architecture, Vision
from modelyard.checkpoints.vision import MissingVisionFields, read_vision

# vLLM loads a checkpoint in 32 bit only on request (config/model.py, "Downcast for float32 models").
_THIRTY_TWO_BIT = ("float", "float32")
# Image fields of a vision model's config outside its vision_config.
_OF_IMAGES = ("spatial_merge_size", "vision_feature_layer")


def read_config(
    config: Mapping[str, Any],
    *,
    model_id: str = "",
    quantization: str | None = None,
    dtype: str | None = None,
) -> Architecture:
    """Read a Hugging Face `config.json`.

    `quantization` and `dtype`: the engine's flags (`--quantization`, `--dtype`).

    Raises:
        UnreadableConfig: fields are missing, or the class or the quantization is unknown.
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
            raise UnreadableConfig(f"config.json: {key} is {shown(inner)}, not an object", (str(key),))
    family_name = _family_name(name, outer, inner, config)
    family = text_family(family_name)
    if family is None:
        if name in families()["speech"]:
            raise UnreadableConfig(
                f"config.json: {name} transcribes speech, and Modelyard serves what generates text, embeds or reranks"
            )
        known = ", ".join((*families()["text"], *families()["vision"]))
        raise UnreadableConfig(
            f"config.json: architectures names {name or 'nothing'}, whose layout is not known; known are {known}",
            ("architectures",) if not name else (),
        )
    fields = Fields(inner, config, {**family.get("defaults", {}), **(outer or {}).get("defaults", {})})
    required = [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    ]
    if "experts" not in family and not fields.get("moe_intermediate_size"):
        required.append("intermediate_size")
    elif not any(fields.states(name) for name in expert_counts(family)):
        required.append(expert_counts(family)[0])
    if missing := tuple(field for field in required if fields.get(field) is None):
        raise UnreadableConfig(f"config.json lacks {', '.join(missing)}", missing)
    for unread in family.get("unread", ()):
        if fields.get(unread):
            raise UnreadableConfig(
                f"config.json: {unread} is {shown(fields.get(unread))}: what {name} does with it is not counted yet"
            )
    try:
        stored = _stored(fields, config, quantization)
        tower = _vision(config, outer, fields)
        found = _architecture(name, model_id, fields, family, outer or {}, stored, tower, dtype)
    except UnreadableConfig:
        raise
    except (UnknownQuantization, MissingVisionFields, WrongNumber) as problem:
        raise UnreadableConfig(f"config.json: {problem}") from problem
    except STRANGE as problem:
        last = fields.asked[-1]
        raise UnreadableConfig(
            f"config.json: {last} is {shown(fields.get(last))}, which is not its format"
        ) from problem
    if not 0 <= found.rope_bytes <= ROPE_BYTES:
        raise UnreadableConfig(
            "config.json: rope_scaling and partial_rotary_factor give tables of an impossible size"
        )
    if not found.head_dim:
        raise UnreadableConfig("config.json: head_dim is 0: hidden_size is less than num_attention_heads")
    return found


def _class_of(config: Mapping[str, Any]) -> str:
    listed = config.get("architectures") or [""]
    listed = [listed] if isinstance(listed, str) else listed
    if not isinstance(listed, list) or not isinstance(listed[0], str):
        raise UnreadableConfig(
            f"config.json: architectures is {shown(listed)}, not a list of names", ("architectures",)
        )
    return str(listed[0])


def _stored(fields: Fields, config: Mapping[str, Any], override: str | None) -> Quantization | None:
    """The checkpoint's quantization, with valid bit widths and group sizes."""
    stated = _quantization_of(fields, config)
    try:
        found = read_quantization(stated, override)
    except UnknownQuantization:
        raise
    except STRANGE as problem:
        raise UnreadableConfig(
            f"config.json: quantization_config is {shown(stated)}, which is not its format"
        ) from problem
    for form in (found.format, *(form for _, form in found.rules)) if found else ():
        for name, value, least, most in (
            ("bits", form.bits, 1, 32),
            ("group_size", form.group, 0, 1 << 24),
            ("block", form.block, 0, 1 << 24),
        ):
            if not least <= value <= most:
                raise UnreadableConfig(
                    f"config.json: quantization_config.{name} is {shown(value)}, not between {least} and {most}"
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


def _quantization_of(fields: Fields, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = (
        config.get("quantization_config")
        or fields.get("quantization_config")
        or fields.get("compression_config")
    )
    return found if isinstance(found, Mapping) else None


def _vision(config: Mapping[str, Any], outer: Mapping[str, Any] | None, fields: Fields) -> Vision | None:
    if outer is None:
        return None
    tower = config.get("vision_config") or config.get("vision")
    if not tower:
        if fields.own is config:  # only the language model's fields: only its weights can be counted
            return None
        raise MissingVisionFields("vision_config")
    if not isinstance(tower, Mapping):
        raise UnreadableConfig(f"config.json: vision_config is {shown(tower)}, not an object")
    beside = {key: config[key] for key in _OF_IMAGES if key in config}
    return read_vision({**beside, **tower}, outer, fields.number("hidden_size"))


def _architecture(
    name: str,
    model_id: str,
    fields: Fields,
    family: Mapping[str, Any],
    outer: Mapping[str, Any],
    quantization: Any,
    vision: Vision | None,
    dtype: str | None,
) -> Architecture:
    number = fields.number
    heads, layers = number("num_attention_heads"), number("num_hidden_layers")
    shared_keys = fields.flag("attention_k_eq_v")
    kv_heads = number("num_key_value_heads", heads)
    head_dim = number("head_dim") or number("hidden_size") // heads
    moe = read_experts(fields, family, layers)
    bias = biases(fields, family)
    headless = family.get("encoder") or family.get("headless")
    tied = None if headless else fields.flag("tie_word_embeddings")
    linear = read_linear(fields, family)
    types = read_layer_types(fields, family, layers, linear)
    return Architecture(
        model_id=model_id,
        architecture=name,
        model_type=str(fields.outer.get("model_type") or fields.get("model_type") or ""),
        hidden=number("hidden_size"),
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=dense_width(fields, family, moe),
        vocab=number("vocab_size"),
        tied_embeddings=bool(family.get("tied", False)) if tied is None else bool(tied),
        max_position=number("max_position_embeddings") - int(family.get("paddedPositions", 0)),
        layer_types=types,
        window=number("attention_chunk_size") if "chunked" in types else number("sliding_window"),
        mlp_matrices=2 if family.get("mlp") == "plain" else 3,
        norms_per_layer=int(family.get("norms", 2))
        + (int(family.get("experts", {}).get("norms", 0)) if moe else 0),
        final_norms=int(family.get("finalNorms", 1)) + pooled_vectors(fields, family),
        query_key_norm=query_key_norm(fields, family),
        attention_bias=bias.get("attention", False),
        output_bias=bias.get("output", False),
        mlp_bias=bias.get("mlp", False),
        head_bias=bias.get("head", False),
        sinks=bool(family.get("sinks")),
        output_gate=bool(family.get("outputGate")),
        dense_layers=dense_layers(fields, family),
        position_table=number("max_position_embeddings") + int(family["positions"])
        if "positions" in family
        else 0,
        rope_bytes=rope_bytes(fields, family, outer, head_dim),
        latent=read_latent(fields),
        moe=moe,
        linear=linear,
        vision=vision,
        mtp_layers=number("num_nextn_predict_layers")
        or number("mtp_num_hidden_layers")
        or number("num_mtp_modules"),
        global_kv_heads=(number("num_global_key_value_heads", kv_heads) if shared_keys else kv_heads)
        if number("global_head_dim")
        else 0,
        global_head_dim=number("global_head_dim"),
        bytes_per_parameter=4 if dtype in _THIRTY_TWO_BIT else 2,
        quantization=quantization,
        tested=bool(family.get("tested", False)),
    )
