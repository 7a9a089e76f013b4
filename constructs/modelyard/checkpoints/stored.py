"""The exact bytes of a checkpoint's tensors, by the part of the model that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from modelyard.checkpoints.shape import Architecture, StoredWeights
from modelyard.checkpoints.tensors import Tensors

# Names in transformers' checkpoints, and GGUF's (gguf 0.19, TENSOR_NAMES).
_LAYER = re.compile(r"(?:^|[./])(?:layers|layer|h|blocks|block|blk)\.$")
_DRAFT = re.compile(r"(?:^|\.)(?:mtp|nextn|eh_proj|enorm|hnorm|shared_head)")
_VISION = re.compile(
    r"vision|visual|vit\b|image|projector|patch_|mlp1\.|vpm|resampler|^v\.|^mm\.", re.IGNORECASE
)
_EXPERT = re.compile(r"\.experts(?:\.|_|$)|_exps(?:\.|$)")
_EMBEDDING = re.compile(r"(?:^|\.)(?:embed_tokens|word_embeddings|wte|embed_in|token_embd|tok_embeddings)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output_layer)(?:\.|$)|^output\.weight$")
# Tensors beside quantized weights, which the engine keeps in their type.
_BESIDE = re.compile(r"scale|zero|absmax|g_idx|quant|nested|_shape$")
_CAST = frozenset({"F64", "F32", "F16", "BF16"})


def with_stored(arch: Architecture, tensors: Iterable[Tensors], *, gguf: bool = False) -> Architecture:
    """`arch` with the exact sizes of `tensors`.

    A safetensors checkpoint's plain weights count in the type into which the engine casts them
    (vllm/config/model.py, dtype); scales and packed weights, and everything in a GGUF file, count as stored.
    """
    listed = tuple(tensors)
    outer = dict.fromkeys(("embedding", "head", "vision", "drafts", "other"), 0)
    plain, experts = [0] * arch.layers, [0] * arch.layers
    for each in listed:
        size = each.bytes_of_one if gguf else _loaded_bytes(arch, each)
        part, place = _part(arch, each)
        if place is None:
            outer[part] += size * each.count
            continue
        per_layer = size * (each.count // sum(last - first + 1 for first, last in each.indices[place]))
        kind = experts if _EXPERT.search(each.name) else plain
        # Layers of a tower after the one whose output is used are not loaded; others of the text are drafts.
        depth = arch.vision.layers if part == "vision" and arch.vision else arch.layers
        for first, last in each.indices[place]:
            inside = range(first, min(last + 1, depth))
            if part == "vision":
                outer["vision"] += per_layer * len(inside)
                continue
            outer["drafts"] += per_layer * (last - first + 1 - len(inside))
            for number in inside:
                kind[number] += per_layer
    if not outer["embedding"]:  # tied, and stored under the name of the output layer
        outer["embedding"], outer["head"] = outer["head"], 0
    if arch.tied_embeddings:
        outer["head"] = 0
    total = sum(each.bytes for each in listed)
    return replace(arch, stored=StoredWeights(total, tuple(zip(plain, experts, strict=True)), **outer))


def weight_counts(tensors: Iterable[Tensors]) -> dict[str, int]:
    """Stored weights by type, without scales: a count of parameters where nothing is packed."""
    counts: dict[str, int] = {}
    for each in tensors:
        if not _BESIDE.search(each.parts[-1]):
            counts[each.kind] = counts.get(each.kind, 0) + each.numbers
    return counts


def _part(arch: Architecture, tensors: Tensors) -> tuple[str, int | None]:
    """The part of the model, and which of the indices is the layer's."""
    name = tensors.name
    layer = next((place for place, part in enumerate(tensors.parts[:-1]) if _LAYER.search(part)), None)
    if arch.vision is not None and _VISION.search(name):
        return "vision", layer
    if _DRAFT.search(name):
        return "drafts", None
    if layer is not None:
        return "layers", layer
    if _HEAD.search(name):
        return "head", None
    return ("embedding" if _EMBEDDING.search(name) else "other"), None


def _loaded_bytes(arch: Architecture, tensors: Tensors) -> int:
    if tensors.kind not in _CAST or _BESIDE.search(tensors.parts[-1]):
        return tensors.bytes_of_one
    return tensors.numbers // tensors.count * arch.bytes_per_parameter
