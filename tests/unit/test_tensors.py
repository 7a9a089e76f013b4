"""Tensors of checkpoints: folded names, and the exact bytes of each part of a model."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.checkpoints import architectures
from modelyard.checkpoints.stored import weight_counts, with_stored
from modelyard.checkpoints.tensor_types import gguf_bits, gguf_types, tensor_bytes
from modelyard.checkpoints.tensors import Tensors, WrongTensors, fold, unfolded
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.weights import checkpoint_size, weights_of_layers, weights_per_accelerator

Listed = dict[str, tuple[str, tuple[int, ...]]]


def names(folded: tuple[Tensors, ...]) -> Listed:
    """Every tensor that `folded` stands for."""
    found: Listed = {}
    for each in folded:
        numbers = [[n for first, last in ranges for n in range(first, last + 1)] for ranges in each.indices]
        for chosen in product(*numbers):
            name = each.parts[0] + "".join(
                f"{number}{part}" for number, part in zip(chosen, each.parts[1:], strict=True)
            )
            assert name not in found
            found[name] = (each.kind, each.shape)
    return found


def experts(layers: range, count: int, kind: str = "BF16") -> Listed:
    return {
        f"model.layers.{n}.mlp.experts.{e}.up_proj.weight": (kind, (8, 4))
        for n in layers
        for e in range(count)
    }


def test_a_mixture_of_experts_is_one_line() -> None:
    (found,) = fold(experts(range(3, 61), 256))

    assert found.name == "model.layers.{3..60}.mlp.experts.{0..255}.up_proj.weight"
    assert found.count == 58 * 256
    assert found.bytes == 58 * 256 * 8 * 4 * 2


def test_tensors_of_other_types_and_gaps_are_lines_of_their_own() -> None:
    listed = experts(range(4), 2) | experts(range(1, 2), 2, "F8_E4M3") | {"model.norm.weight": ("BF16", (4,))}
    del listed["model.layers.3.mlp.experts.1.up_proj.weight"]

    assert [each.name for each in fold(listed)] == [
        "model.layers.{0,2}.mlp.experts.{0..1}.up_proj.weight",
        "model.layers.{1}.mlp.experts.{0..1}.up_proj.weight",
        "model.layers.{3}.mlp.experts.{0}.up_proj.weight",
        "model.norm.weight",
    ]


@given(
    st.dictionaries(
        st.from_regex(r"\A(h\.([0-9]|1[0-9])\.)?(e\.[0-3]\.)?[ab](\.0|\.00)?\Z"),
        st.tuples(st.sampled_from(["BF16", "F32"]), st.sampled_from([(2,), (2, 3), ()])),
    )
)
def test_what_is_folded_unfolds_to_the_same(listed: Listed) -> None:
    folded = fold(listed)

    assert names(folded) == listed
    assert fold(dict(reversed(listed.items()))) == folded
    assert tuple(unfolded(each.name, each.kind, each.shape) for each in folded) == folded


@pytest.mark.parametrize(
    ("name", "kind", "shape", "words"),
    [
        ("a.{1..0}", "BF16", (1,), "indices that do not ascend"),
        ("a.{0..2,2}", "BF16", (1,), "indices that do not ascend"),
        ("a.{0..999999}.{0..9}", "BF16", (1,), "1,000,000 are the most"),
        ("a.{0..9999999}", "BF16", (1,), "do not ascend"),
        ("a.{x}", "BF16", (1,), "a tensor called 'a.{x}'"),
        ("a b", "BF16", (1,), "a tensor called 'a b'"),
        ("a", "BF15", (1,), "of type 'BF15', which is not known"),
        ("a", "BF16", (-1,), "the impossible shape"),
        ("a", "BF16", (1 << 40, 1 << 40), "the impossible shape"),
    ],
)
def test_a_name_type_or_shape_of_no_checkpoint_is_refused(
    name: str, kind: str, shape: tuple[int, ...], words: str
) -> None:
    with pytest.raises(WrongTensors, match=words.replace("(", r"\(").replace("{", r"\{")):
        unfolded(name, kind, shape)


def test_blocks_of_a_quantization_count_whole() -> None:
    assert tensor_bytes("Q4_K", (256, 4)) == 4 * 144
    assert tensor_bytes("Q8_0", (32,)) == 34
    assert tensor_bytes("F4", (3,)) == 2
    assert gguf_types()[14] == "Q6_K"


@pytest.mark.parametrize(
    ("kind", "gib"), [("Q4_K_M", 4.58), ("Q5_K_M", 5.33), ("Q6_K", 6.14), ("Q8_0", 7.95), ("IQ4_XS", 4.17)]
)
def test_a_mixture_has_the_published_size_of_its_file(kind: str, gib: float) -> None:
    assert 8_030_261_248 * gguf_bits()[kind] / 8 / 2**30 == pytest.approx(gib, abs=0.01)


LLAMA = architectures()["meta-llama/Llama-3.1-8B-Instruct"]


def llama(kind: str = "BF16") -> Listed:
    """The tensors of Llama 3.1 8B by their published names."""
    hidden, inner, keys = 4096, 14336, 1024
    found: Listed = {
        "model.embed_tokens.weight": (kind, (128256, hidden)),
        "lm_head.weight": (kind, (128256, hidden)),
        "model.norm.weight": (kind, (hidden,)),
    }
    for layer in range(32):
        at = f"model.layers.{layer}"
        for name, shape in {
            "self_attn.q_proj": (hidden, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, hidden),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
        }.items():
            found[f"{at}.{name}.weight"] = (kind, shape)
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}.{name}.weight"] = (kind, (hidden,))
    return found


@pytest.mark.parametrize("split", [Parallelism(), Parallelism(tensor=4), Parallelism(tensor=2, pipeline=2)])
def test_where_the_config_describes_the_tensors_every_rank_holds_what_the_formula_says(
    split: Parallelism,
) -> None:
    exact = with_stored(LLAMA, fold(llama()))

    for stage in range(split.pipeline):
        ours = weights_per_accelerator(exact, split, stage)
        assert ours.in_bytes == pytest.approx(weights_per_accelerator(LLAMA, split, stage).in_bytes, rel=1e-6)


def test_what_the_config_does_not_tell_is_in_the_exact_size() -> None:
    listed = llama()
    for layer in range(32):
        listed[f"model.layers.{layer}.self_attn.gate.weight"] = ("BF16", (4096, 4096))
    more = 32 * 4096 * 4096 * 2

    exact = with_stored(LLAMA, fold(listed))

    before = weights_per_accelerator(LLAMA).in_bytes
    assert weights_per_accelerator(exact).in_bytes - before == pytest.approx(more, rel=0.02)
    assert checkpoint_size(exact).in_bytes == sum(each.bytes for each in fold(listed))


def test_32_bit_weights_count_as_the_engine_casts_them_and_scales_as_stored() -> None:
    listed = llama("F32") | {
        f"model.layers.{n}.mlp.up_proj.weight_scale_inv": ("F32", (112, 32)) for n in range(32)
    }

    stored = with_stored(LLAMA, fold(listed)).stored

    assert stored is not None
    assert stored.embedding == 128256 * 4096 * 2
    assert stored.total == sum(each.bytes for each in fold(listed))
    plain = with_stored(LLAMA, fold(llama())).stored
    assert plain is not None
    assert stored.layers[0][0] - plain.layers[0][0] == 112 * 32 * 4
    assert sum(weight_counts(fold(listed)).values()) == 8_030_261_248


def test_an_output_layer_that_is_tied_is_held_once_under_either_name() -> None:
    tied = replace(LLAMA, tied_embeddings=True)
    listed = llama()
    both = with_stored(tied, fold(listed)).stored
    del listed["model.embed_tokens.weight"]
    head_alone = with_stored(tied, fold(listed)).stored

    assert both is not None
    assert head_alone is not None
    assert (both.embedding, both.head) == (head_alone.embedding, head_alone.head) == (128256 * 4096 * 2, 0)


def test_layers_of_multi_token_prediction_count_with_drafts_alone() -> None:
    deepseek = architectures()["deepseek-ai/DeepSeek-V3"]
    listed: Listed = {
        "model.embed_tokens.weight": ("BF16", (4, 4)),
        "model.layers.60.mlp.experts.255.up_proj.weight": ("F8_E4M3", (4, 4)),
        "model.layers.60.mlp.shared_experts.up_proj.weight": ("F8_E4M3", (4, 4)),
        "model.layers.61.mlp.experts.0.up_proj.weight": ("F8_E4M3", (4, 4)),
        "model.layers.61.eh_proj.weight": ("BF16", (4, 4)),
        "mtp.layers.0.input_layernorm.weight": ("BF16", (4,)),
    }

    stored = with_stored(deepseek, fold(listed)).stored

    assert stored is not None
    assert stored.layers[60] == (16, 16)
    assert stored.drafts == 16 + 32 + 8
    assert stored.other == 0


def test_a_towers_tensors_are_its_own_and_those_behind_the_layer_that_is_used_are_not_loaded() -> None:
    llava = next(
        arch
        for name in architectures().repositories()
        if (arch := architectures()[name]).architecture == "LlavaNextForConditionalGeneration"
    )
    assert llava.vision is not None
    depth = llava.vision.layers
    listed: Listed = {
        "multi_modal_projector.linear_1.weight": ("BF16", (4, 4)),
        "language_model.model.layers.0.mlp.up_proj.weight": ("BF16", (4, 4)),
        "language_model.lm_head.weight": ("BF16", (4, 4)),
    }
    for layer in range(depth + 1):
        listed[f"vision_tower.vision_model.encoder.layers.{layer}.mlp.fc1.weight"] = ("BF16", (4, 4))

    stored = with_stored(llava, fold(listed)).stored

    assert stored is not None
    assert stored.vision == depth * 32 + 32
    assert stored.layers[0] == (32, 0)


def test_offloaded_layers_of_a_gguf_file_are_its_own_tensors() -> None:
    listed: Listed = {
        "token_embd.weight": ("Q4_K", (128256, 4096)),
        "output.weight": ("Q6_K", (128256, 4096)),
        **{f"blk.{n}.ffn_down.weight": ("Q6_K" if n < 4 else "Q4_K", (4096, 14336)) for n in range(32)},
    }

    exact = with_stored(LLAMA, fold(listed), gguf=True)

    last = weights_of_layers(exact, range(30, 32), output=True).in_bytes
    assert last == 2 * tensor_bytes("Q4_K", (4096, 14336)) + tensor_bytes("Q6_K", (128256, 4096))
    first = weights_of_layers(exact, range(2), output=False).in_bytes
    assert first == 2 * tensor_bytes("Q6_K", (4096, 14336))
