"""config.json files found in the wild: unreadable ones are refused, and the field is named."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from modelyard.checkpoints import UnreadableConfig, architectures, read_config
from modelyard.hardware import Memory
from modelyard.memory.weights import checkpoint_size

DENSE = "Qwen/Qwen3-8B"
WRONG: list[Any] = [0, -1, 10**12, 1.5, math.nan, math.inf, "4096", [], ["x"], [None], {}, True]


def changed(model: str = DENSE, **fields: Any) -> dict[str, Any]:
    config = copy.deepcopy(architectures().config(model))
    config.update(fields)
    return {key: value for key, value in config.items() if value is not ...}


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(UnreadableConfig) as problem:
        read_config(config)
    return str(problem.value)


@pytest.mark.parametrize(
    "field",
    ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings"],
)
@pytest.mark.parametrize("value", [..., None, *WRONG], ids=repr)
def test_a_size_that_is_none_is_named(field: str, value: Any) -> None:
    assert field in refusal(changed(**{field: value}))


@pytest.mark.parametrize(
    ("model", "field", "value"),
    [
        (DENSE, "architectures", "NoSuchModel"),
        (DENSE, "architectures", [1]),
        (DENSE, "architectures", {}),
        (DENSE, "num_key_value_heads", 0),
        (DENSE, "head_dim", -128),
        (DENSE, "head_dim", 1e9),
        (DENSE, "intermediate_size", ...),
        (DENSE, "intermediate_size", 10**12),
        (DENSE, "tie_word_embeddings", "false"),
        (DENSE, "attention_bias", 3),
        (DENSE, "rope_scaling", "yarn"),
        (DENSE, "rope_scaling", {"rope_type": "linear", "factor": 1e300}),
        (DENSE, "quantization_config", {"quant_method": "magic"}),
        (DENSE, "quantization_config", {"quant_method": "awq", "bits": -4}),
        (DENSE, "quantization_config", {"quant_method": "awq", "bits": "four"}),
        (DENSE, "quantization_config", {"quant_method": "fp8", "weight_block_size": 128}),
        ("Qwen/Qwen3-30B-A3B", "num_experts", ...),
        ("Qwen/Qwen3-30B-A3B", "num_experts", 10**9),
        ("Qwen/Qwen3-30B-A3B", "moe_intermediate_size", ...),
        ("Qwen/Qwen3-30B-A3B", "num_experts_per_tok", ...),
        ("Qwen/Qwen3-30B-A3B", "mlp_only_layers", 7),
        ("openai/gpt-oss-20b", "layer_types", ["strange"] * 24),
        ("google/gemma-3-27b-it", "text_config", [1]),
        ("google/gemma-3-27b-it", "vision_config", "siglip"),
        ("google/gemma-3-27b-it", "vision_config", {"hidden_size": 1152, "num_hidden_layers": 10**9}),
        ("google/gemma-3-27b-it", "vision_config", {"hidden_size": 1152}),
        ("google/gemma-3-27b-it", "vision_config", ...),
    ],
    ids=repr,
)
def test_a_field_of_the_wrong_kind_is_named(model: str, field: str, value: Any) -> None:
    message = refusal(changed(model, **{field: value}))

    assert message.startswith("config.json")
    assert field in message or "NoSuchModel" in message or "magic" in message


def test_a_list_is_one_number_a_layer() -> None:
    assert read_config(changed(num_key_value_heads=[8] * 36)) == read_config(changed(num_key_value_heads=8))


def test_numbers_that_json_wrote_as_floats_are_whole() -> None:
    assert read_config(changed(hidden_size=4096.0)) == read_config(changed())


def test_what_decides_nothing_may_be_anything() -> None:
    assert read_config(changed(time_step_limit=[0.0, math.inf], auto_map=1)) == read_config(changed())


def test_a_checkpoint_in_32_bit_is_loaded_in_16() -> None:
    """As vLLM does unless it is told otherwise."""
    config = changed(torch_dtype="float32", dtype=...)
    half, full = (checkpoint_size(read_config(config, dtype=dtype)) for dtype in ("auto", "float32"))

    assert Memory.gib(15) < half < Memory.gib(16)
    assert full.in_gib == pytest.approx(2 * half.in_gib, rel=0.01)
