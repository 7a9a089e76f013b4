"""Parameters of vision towers and of their projectors to the language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.checkpoints.limits import WrongNumber, shown, whole_number
from modelyard.checkpoints.shape import Vision

_GATED = ("pixtral", "qwen2_5_vl", "glm4v", "gemma4")
_PLAIN = ("pixtral", "mllama", "glm4v", "gemma4")  # projections without biases
_NARROW = ("pixtral", "qwen2_5_vl", "glm4v")  # norms without biases
# Towers by model_type of the vision config, for classes that accept any tower.
_BY_TYPE = {"siglip_vision_model": "siglip", "pixtral": "pixtral"}

_NUMBERS = (
    "embed_dim",
    "hidden_size",
    "depth",
    "num_hidden_layers",
    "num_global_layers",
    "intermediate_size",
    "num_attention_heads",
    "num_heads",
    "attention_heads",
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "image_size",
    "num_position_embeddings",
    "init_pos_emb_height",
    "out_hidden_size",
    "position_embedding_size",
    "vision_output_dim",
    "projector_input_dim",
    "projector_output_dim",
    "max_num_tiles",
    "max_aspect_ratio_id",
)


class MissingVisionFields(ValueError):
    """A vision config without the fields that determine its size."""


def read_vision(config: Mapping[str, Any], family: Mapping[str, Any], text_hidden: int) -> Vision:
    """The tower of `config` (`vision_config`) and its projector to `text_hidden`.

    A transformer layer has four square projections and two or three MLP matrices; the rest (patches,
    positions, norms, the projector) depends on the family's tower. `config` also holds the image fields of
    the whole model's config.

    Raises:
        MissingVisionFields: the config lacks the tower's size.
        WrongNumber: a size is not a plausible number.
    """
    config = {name.removeprefix("vt_"): value for name, value in config.items()}  # Kimi K2.5's spelling
    config = {**config, **_sizes(config)}
    tower = str(family["tower"])
    if tower == "clip":  # a class that accepts several towers
        tower = _BY_TYPE.get(str(config.get("model_type")), tower)
    hidden = config.get("embed_dim") if tower == "qwen2_vl" else None
    hidden = hidden or config.get("hidden_size")
    layers = config.get("depth") or config.get("num_hidden_layers")
    if not hidden or not layers:
        raise MissingVisionFields("vision_config.hidden_size and vision_config.num_hidden_layers")
    width = config.get("intermediate_size") or round(hidden * float(config.get("mlp_ratio", 4)))
    if tower == "glm4v":  # intermediate_size is the projector's
        width = config.get("out_hidden_size", width)
    heads = int(
        config.get("num_attention_heads") or config.get("num_heads") or config.get("attention_heads") or 16
    )
    chosen = _chosen_layers(config, family)
    layers = max(_position(layer, layers) for layer in chosen)
    layers += int(config.get("num_global_layers") or 0)
    attention, mlp, norms = _layer(config, tower, hidden, width)
    return Vision(
        layers=layers,
        hidden=hidden,
        intermediate=width,
        heads=heads,
        attention_parameters=layers * attention,
        mlp_parameters=layers * mlp,
        other_parameters=layers * norms
        + _embedding(config, tower, hidden)
        + _projector(config, family, tower, hidden, text_hidden, len(chosen)),
        tokens=int(family["tokens"]),
        patches=int(family["tokens"]) * int(family.get("patchesPerToken", 1)),
        cross_attention=bool(family.get("crossAttention", False)),
        video_images=int(family.get("videoImages", 1)),
    )


def _chosen_layers(config: Mapping[str, Any], family: Mapping[str, Any]) -> list[int]:
    """Layers whose outputs the projector uses; deeper layers are not loaded (vLLM,
    init_vision_tower_for_llava)."""
    stated = config.get("vision_feature_layer", family.get("featureLayer", -1))
    found = stated if isinstance(stated, list | tuple) and stated else [stated]
    if any(isinstance(layer, bool) or not isinstance(layer, int) for layer in found):
        raise WrongNumber(f"vision_feature_layer is {shown(stated)}, not a layer or several")
    return list(found)


def _position(layer: int, layers: int) -> int:
    return min(layers, max(0, layer if layer >= 0 else layers + layer + 1))


def _layer(config: Mapping[str, Any], tower: str, hidden: int, width: int) -> tuple[int, int, int]:
    """Parameters of one layer: four projections, the MLP, and norms."""
    matrices = 3 if tower in _GATED else 2
    biases = 4 * hidden if tower not in _PLAIN else 0
    norms = 2 * hidden if tower in _NARROW else 4 * hidden
    if tower == "gemma4":  # norms of query and key
        norms += 2 * (hidden // int(config.get("num_attention_heads") or 1))
    if tower == "intern_vit":
        norms += 2 * hidden  # scales of both branches
        norms -= 2 * hidden * (config.get("norm_type") == "rms_norm")
        norms += 2 * hidden * bool(config.get("qk_normalization") or config.get("use_qk_norm"))
        biased = config.get("qkv_bias", config.get("attention_bias", True))
        biases = (4 if biased else 1) * hidden
    mlp = matrices * hidden * width
    mlp += (matrices - 1) * width + hidden if tower not in ("pixtral", "glm4v", "gemma4") else 0
    return 4 * hidden * hidden + biases, mlp, norms


def _sizes(config: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of `config`, range-checked; for one value per dimension, the maximum."""
    found = {}
    for name in _NUMBERS:
        value = config.get(name)
        several = value if isinstance(value, list) and value else [value]
        if value is not None:
            found[name] = max(whole_number(f"vision_config.{name}", number) for number in several)
    ratio = config.get("mlp_ratio", 4)
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= 64:
        raise WrongNumber(f"vision_config.mlp_ratio is {shown(ratio)}, not between 0 and 64")
    deep = config.get("deepstack_visual_indexes", ())
    if not isinstance(deep, list | tuple) or len(deep) > 1024:
        raise WrongNumber(f"vision_config.deepstack_visual_indexes is {shown(deep)}, not a list of layers")
    return found


def _embedding(config: Mapping[str, Any], tower: str, hidden: int) -> int:
    """Patches, positions, and the norms before and after the layers."""
    patch = int(config.get("patch_size", 14))
    frames = int(config.get("temporal_patch_size", 2)) if tower.startswith(("qwen", "glm")) else 1
    patches = 3 * frames * patch * patch * hidden
    image = config.get("image_size")
    squares = (int(image) // patch) ** 2 if image else 0
    if tower == "pixtral":
        return patches + hidden
    if tower == "glm4v":
        return patches + hidden + squares * hidden + 2 * hidden
    if tower == "gemma4":  # a table of positions for each direction
        return patches + 2 * int(config.get("position_embedding_size", 0)) * hidden
    if tower == "siglip":
        return patches + (squares + 1) * hidden + 2 * hidden
    if tower in ("clip", "intern_vit"):  # with a class token
        return patches + (squares + 2) * hidden + (2 if tower == "clip" else 1) * hidden
    if tower == "llama4":
        return patches + (squares + 2) * hidden + 4 * hidden
    if tower == "mllama":  # one position table per tile arrangement
        tiles = int(config.get("max_num_tiles", 4))
        arrangements = int(config.get("max_aspect_ratio_id", 8)) + 1
        tables = arrangements * tiles * hidden * (squares + 1 + 2)
        return patches + (squares + 2) * hidden + 4 * hidden + tables
    if tower in ("qwen3_vl", "qwen3_5"):
        return patches + hidden + int(config.get("num_position_embeddings", 0)) * hidden
    if tower == "moonvit":
        return patches + hidden + int(config.get("init_pos_emb_height", 64)) ** 2 * hidden + 2 * hidden
    return patches


def _projector(
    config: Mapping[str, Any], family: Mapping[str, Any], tower: str, hidden: int, text: int, chosen: int
) -> int:
    merged = hidden * int(config.get("spatial_merge_size", 2)) ** 2
    if tower in ("qwen2_vl", "qwen2_5_vl"):
        norm = 2 * hidden if tower == "qwen2_vl" else hidden
        return norm + _linear(merged, merged) + _linear(merged, text)
    if tower in ("qwen3_vl", "qwen3_5"):
        one = _linear(merged, merged) + _linear(merged, text)
        deep = len(config.get("deepstack_visual_indexes", (8, 16, 24) if tower == "qwen3_vl" else ()))
        return one * (1 + deep) + 2 * hidden + deep * 2 * merged
    if tower == "glm4v":  # patches are joined, projected and gated
        out, inner = int(config.get("out_hidden_size", text)), int(config.get("intermediate_size", 4 * text))
        return _linear(merged, out) + out * out + 2 * out + 3 * out * inner
    if tower == "gemma4":
        return hidden * text
    if tower == "intern_vit":
        return 8 * hidden + _linear(4 * hidden, text) + _linear(text, text)
    if tower == "moonvit":
        return 2 * hidden + _linear(merged, merged) + _linear(merged, text)
    if tower == "mllama":
        return _linear(int(config.get("vision_output_dim", 6 * hidden)), text)
    if tower == "llama4":
        inner, out = (
            int(config.get("projector_input_dim", 4096)),
            int(config.get("projector_output_dim", 4096)),
        )
        return int(config.get("intermediate_size", 5632)) * inner + inner * out + out * text
    if family["projector"] == "merged":
        return hidden + merged * hidden + hidden * text + text * text
    if family["projector"] == "double":
        return _linear(chosen * hidden, text) + _linear(text, text) + text * bool(family.get("newline"))
    return hidden * text + hidden


def _linear(inputs: int, outputs: int) -> int:
    """A projection with bias."""
    return inputs * outputs + outputs
