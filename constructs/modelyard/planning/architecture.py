"""What a model is made of: the facts of its `config.json`, from a dated table and never guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True)
class Quantization:
    """How the checkpoint stores its linear layers. `method` is Hugging Face's `quant_method`."""

    method: str
    bits: int


@dataclass(frozen=True)
class Architecture:
    """Architecture of one checkpoint; names follow `config.json`.

    `experts` is 0 for a dense model. `sliding_layers` of the layers attend only to the last `sliding_window` tokens.
    `vision_parameters` counts the tower and projector of a vision model. `gated`: downloading needs an accepted
    licence and a token.
    """

    model_id: str
    architecture: str
    model_type: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool
    max_position: int
    attention_bias: bool = False
    experts: int = 0
    experts_per_token: int = 0
    moe_intermediate: int = 0
    expert_bias: bool = False
    sliding_window: int = 0
    sliding_layers: int = 0
    vision_parameters: int = 0
    quantization: Quantization | None = None
    gated: bool = False
    published_parameters: float = 0.0
    source: str = ""

    @property
    def multimodal(self) -> bool:
        return self.vision_parameters > 0


@cache
def architectures() -> Mapping[str, Architecture]:
    """Every known architecture by Hugging Face id."""
    text = files("modelyard.planning").joinpath("data", "architectures.json").read_text(encoding="utf-8")
    return MappingProxyType(
        {
            model_id: Architecture(
                model_id=model_id,
                architecture=row["architecture"],
                model_type=row["modelType"],
                hidden=row["hiddenSize"],
                layers=row["numHiddenLayers"],
                heads=row["numAttentionHeads"],
                kv_heads=row["numKeyValueHeads"],
                head_dim=row["headDim"],
                intermediate=row["intermediateSize"],
                vocab=row["vocabSize"],
                tied_embeddings=row["tieWordEmbeddings"],
                max_position=row["maxPositionEmbeddings"],
                attention_bias=row.get("attentionBias", False),
                experts=row.get("numExperts", 0),
                experts_per_token=row.get("numExpertsPerTok", 0),
                moe_intermediate=row.get("moeIntermediateSize", 0),
                expert_bias=row.get("expertBias", False),
                sliding_window=row.get("slidingWindow", 0),
                sliding_layers=row.get("slidingLayers", 0),
                vision_parameters=round(row.get("visionParametersB", 0) * 1e9),
                quantization=Quantization(**row["quantization"]) if "quantization" in row else None,
                gated=row.get("gated", False),
                published_parameters=row.get("publishedParametersB", 0) * 1e9,
                source=row["source"],
            )
            for model_id, row in json.loads(text)["models"].items()
        }
    )
