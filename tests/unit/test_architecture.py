"""Parsing of config.json, where transformers has no class that tests/engine could count with."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.checkpoints import modules, read_config

_SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    ("architecture", "published", "sizes"),
    [
        # hidden, layers, heads, KV heads, intermediate, vocabulary
        ("InternLM2ForCausalLM", 7.738e9, (4096, 32, 32, 8, 14336, 92544)),
        ("InternLM3ForCausalLM", 8.804e9, (4096, 48, 32, 2, 10240, 128512)),
        ("SolarForCausalLM", 22.14e9, (5120, 64, 40, 10, 17920, 32128)),
    ],
)
def test_a_family_without_a_class_meets_its_published_total(
    architecture: str, published: float, sizes: tuple[int, ...]
) -> None:
    names = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
    )
    config = {
        "architectures": [architecture],
        "head_dim": 128,
        "max_position_embeddings": 32768,
        **dict(zip(names, sizes, strict=True)),
    }

    total = sum(module.parameters for module in modules(read_config(config)))

    assert total == pytest.approx(published, rel=0.001)


def test_a_layer_of_nemotron_h_is_a_mixer_or_a_feed_forward() -> None:
    config = _SMALL | {
        "architectures": ["NemotronHForCausalLM"],
        "num_hidden_layers": 6,
        "hybrid_override_pattern": "M-M*-M",
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 32,
        "n_groups": 2,
    }

    arch = read_config(config)

    assert arch.layer_types == ("mamba", "none", "mamba", "full", "none", "mamba")
    assert arch.dense_layers == frozenset({1, 4})
    assert arch.attention_layers == 1
    assert arch.rope_bytes == 0


@pytest.mark.parametrize(("said", "size"), [({}, 4), ({"mamba_ssm_dtype": "bfloat16"}, 2)])
def test_a_recurrent_state_has_the_format_that_the_config_says(said: dict[str, str], size: int) -> None:
    config = _SMALL | {
        "architectures": ["Qwen3_5ForCausalLM"],
        "num_hidden_layers": 4,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
    }

    arch = read_config(config | said)

    assert arch.linear
    assert arch.linear.state_bytes == size


def test_a_class_that_is_not_known_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="FalconH1ForCausalLM, whose layout is not known"):
        read_config(_SMALL | {"architectures": ["FalconH1ForCausalLM"], "num_hidden_layers": 2})
