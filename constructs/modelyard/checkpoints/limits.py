"""Plausible ranges of numbers in a config.json: a value outside is a mistake, not a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_ANY = (0, 1 << 24)

# Minimum and maximum per field, an order of magnitude or two beyond any published model. Required sizes are
# at least 1; unlisted fields are limited to `_ANY`.
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "hidden_size": (1, 1 << 18),
        "embed_dim": (1, 1 << 18),
        "num_hidden_layers": (1, 1024),
        "depth": (1, 1024),
        "num_attention_heads": (1, 1 << 12),
        "num_heads": (1, 1 << 12),
        "num_key_value_heads": (1, 1 << 12),
        "head_dim": (0, 1 << 14),
        "global_head_dim": (0, 1 << 14),
        "num_global_key_value_heads": (1, 1 << 12),
        "vocab_size": (1, 1 << 24),
        "max_position_embeddings": (1, 1 << 30),
        "original_max_position_embeddings": (1, 1 << 30),
        "sliding_window": (0, 1 << 30),
        "attention_chunk_size": (0, 1 << 30),
        "num_nextn_predict_layers": (0, 64),
        "mtp_num_hidden_layers": (0, 64),
        "num_mtp_modules": (0, 64),
        "num_experts": (0, 1 << 14),
        "num_local_experts": (0, 1 << 14),
        "n_routed_experts": (0, 1 << 14),
        "num_experts_per_tok": (1, 1 << 10),
        "n_shared_experts": (0, 1 << 10),
        "num_shared_experts": (0, 1 << 10),
        "full_attention_interval": (1, 1024),
        "patch_size": (1, 1 << 10),
        "temporal_patch_size": (1, 64),
        "spatial_merge_size": (1, 64),
        "image_size": (1, 1 << 16),
        "num_global_layers": (0, 1024),
        "linear_num_key_heads": (1, 1 << 12),
        "linear_num_value_heads": (1, 1 << 12),
        "linear_key_head_dim": (1, 1 << 14),
        "linear_value_head_dim": (1, 1 << 14),
    }
)

ROPE_BYTES = 1 << 40
"""Maximum size of rotary embedding tables."""


class WrongNumber(ValueError):
    """A field that is not a number of plausible size."""


def shown(value: object) -> str:
    """`value` for a message, at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def whole_number(name: str, value: Any) -> int:
    """`value` of the field `name`; the last part of the name selects the limits.

    Raises:
        WrongNumber: not a whole number, or outside the limits.
    """
    least, most = LIMITS.get(name.rpartition(".")[2], _ANY)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise WrongNumber(f"{name} is {shown(value)}, not a number")
    if not least <= value <= most:
        raise WrongNumber(f"{name} is {shown(value)}, not between {least} and {most}")
    if value != int(value):
        raise WrongNumber(f"{name} is {shown(value)}, not a whole number")
    return int(value)
