"""The KV cache in blocks, against results of vLLM 0.33.0's own planner."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modelyard.checkpoints import Architecture, architectures
from modelyard.checkpoints.shape import LayerType
from modelyard.engines import CacheRules
from modelyard.hardware import Memory
from modelyard.memory.kv_cache import CacheLayout, cache_layout
from modelyard.memory.parallelism import Parallelism

# vllm/v1/core/kv_cache_utils.py of 0.33.0, run 2026-11-21 with two batches in flight: model, ranks, cache
# dtype, hybrid cache manager, batched tokens, length, GiB for the cache; block size, bytes of a block, bytes
# that one request needs, blocks, tokens.
GOLDEN = [
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        1,
        "auto",
        True,
        2048,
        131072,
        20,
        16,
        2097152,
        17179869184,
        10240,
        163840,
    ),
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        1,
        "fp8",
        True,
        2048,
        131072,
        20,
        16,
        1048576,
        8589934592,
        20480,
        327680,
    ),
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        4,
        "auto",
        True,
        8192,
        131072,
        40,
        16,
        524288,
        4294967296,
        81920,
        1310720,
    ),
    (
        "meta-llama/Llama-3.1-8B-Instruct",
        16,
        "auto",
        True,
        8192,
        131072,
        40,
        16,
        262144,
        2147483648,
        163840,
        2621440,
    ),
    (
        "meta-llama/Llama-3.3-70B-Instruct",
        4,
        "auto",
        True,
        2048,
        131072,
        5,
        16,
        1310720,
        10737418240,
        4096,
        65536,
    ),
    (
        "meta-llama/Llama-3.3-70B-Instruct",
        8,
        "auto",
        True,
        8192,
        131072,
        50,
        16,
        655360,
        5368709120,
        81920,
        1310720,
    ),
    ("Qwen/Qwen3-8B", 1, "auto", True, 2048, 40960, 20, 16, 2359296, 6039797760, 9102, 145632),
    ("Qwen/Qwen3-32B", 2, "auto", True, 8192, 40960, 35, 16, 2097152, 5368709120, 17920, 286720),
    ("Qwen/Qwen3-30B-A3B", 2, "auto", True, 2048, 40960, 10, 16, 786432, 2013265920, 13653, 218448),
    ("Qwen/Qwen3-235B-A22B-FP8", 8, "auto", True, 8192, 40960, 14, 16, 770048, 1971322880, 19521, 312336),
    ("meta-llama/Llama-2-7b-hf", 1, "auto", True, 2048, 4096, 8, 16, 8388608, 2147483648, 1024, 16384),
    ("deepseek-ai/DeepSeek-V3", 8, "auto", True, 8192, 163840, 30, 64, 4497408, 11513364480, 7162, 458368),
    ("deepseek-ai/DeepSeek-V3", 8, "fp8", True, 8192, 163840, 30, 64, 2248704, 5756682240, 14324, 916736),
    (
        "deepseek-ai/DeepSeek-V3",
        8,
        "fp8_ds_mla",
        True,
        8192,
        163840,
        30,
        64,
        2561024,
        6556221440,
        12577,
        804928,
    ),
    ("openai/gpt-oss-20b", 1, "auto", True, 2048, 131072, 20, 16, 393216, 3325427712, 54613, 846427),
    ("openai/gpt-oss-20b", 1, "auto", True, 8192, 131072, 50, 16, 393216, 3627417600, 136533, 1939908),
    ("openai/gpt-oss-120b", 1, "auto", True, 8192, 131072, 10, 16, 589824, 5441126400, 18204, 258648),
    ("openai/gpt-oss-120b", 2, "auto", True, 8192, 131072, 30, 16, 294912, 2720563200, 109226, 1551920),
    ("google/gemma-3-27b-it", 1, "auto", True, 8192, 131072, 15, 16, 1310720, 19301662720, 12288, 109372),
    ("google/gemma-3-27b-it", 2, "auto", True, 2048, 131072, 12, 16, 655360, 6630932480, 19660, 254682),
    (
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        4,
        "auto",
        True,
        8192,
        262144,
        30,
        272,
        3342336,
        3242065920,
        9637,
        2604414,
    ),
    (
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        8,
        "auto",
        True,
        8192,
        262144,
        30,
        144,
        1769472,
        3232825344,
        18204,
        2611970,
    ),
    ("openai/gpt-oss-20b", 1, "auto", False, 8192, 131072, 50, 16, 786432, 6442450944, 68266, 1092256),
    ("google/gemma-3-27b-it", 1, "auto", False, 8192, 131072, 15, 16, 8126464, 66571993088, 1981, 31696),
]


def layout_of(
    model: str, ranks: int = 1, dtype: str = "auto", batched: int = 8192, **rules: bool
) -> CacheLayout:
    arch = architectures()[model]
    return cache_layout(
        arch,
        tensor_parallel=ranks,
        kv_cache_dtype=dtype,
        max_num_batched_tokens=batched,
        block_size=64 if arch.latent else 16,
        rules=CacheRules(**rules),
    )


@pytest.mark.parametrize(
    (
        "model",
        "ranks",
        "dtype",
        "hybrid",
        "batched",
        "length",
        "gib",
        "block_size",
        "block_bytes",
        "needed",
        "blocks",
        "tokens",
    ),
    GOLDEN,
)
def test_the_cache_is_what_vllm_computes(
    model: str,
    ranks: int,
    dtype: str,
    hybrid: bool,
    batched: int,
    length: int,
    gib: int,
    block_size: int,
    block_bytes: int,
    needed: int,
    blocks: int,
    tokens: int,
) -> None:
    layout = layout_of(model, ranks, dtype, batched, hybrid=hybrid)
    available = Memory.gib(gib)

    assert (layout.block_size, layout.bytes_per_block) == (block_size, block_bytes)
    assert layout.need(length) == Memory.bytes(needed)
    assert (layout.blocks(available), layout.tokens(available, length)) == (blocks, tokens)


def test_layers_with_a_window_share_blocks_with_those_without() -> None:
    """52 layers that see 1024 tokens and 10 that see all are six groups and one, the last of them padded."""
    groups = layout_of("google/gemma-3-27b-it").groups

    assert sorted((group.window, group.layers) for group in groups) == [
        (0, 10),
        *[(1024, 8)] * 2,
        *[(1024, 9)] * 4,
    ]


@pytest.mark.parametrize(
    ("model", "ranks", "sliding", "full"),
    [
        # Gemma 4: 8 heads of 256 with a window, 2 of 512 without.
        ("google/gemma-4-26B-A4B-it", 1, 1, 2),
        ("google/gemma-4-26B-A4B-it", 4, 1, 1),
        ("google/gemma-4-26B-A4B-it", 8, 2, 1),
        ("google/gemma-4-31B-it", 2, 1, 2),
    ],
)
def test_blocks_are_equally_large_and_hold_more_tokens_of_narrower_layers(
    model: str, ranks: int, sliding: int, full: int
) -> None:
    arch, layout = architectures()[model], layout_of(model, ranks)
    widest = max(
        2 * 2 * max(1, heads // ranks) * width
        for heads, width in ((arch.kv_heads, arch.head_dim), (arch.global_kv_heads, arch.global_head_dim))
    )

    assert {(group.window > 0, group.denser) for group in layout.groups} == {(True, sliding), (False, full)}
    assert layout.bytes_per_block == 16 * widest * max(group.layers for group in layout.groups)
    [whole] = [group for group in layout.groups if not group.window]
    kept = layout.blocks_for(200_000) - layout.blocks_for(100_000)
    assert kept == pytest.approx(100_000 / 16 / whole.denser, abs=1)


def test_almost_equal_kinds_of_layers_are_padded_to_the_larger() -> None:
    """Else 12 layers and 13 would be three groups."""
    kinds: list[LayerType] = ["sliding" if layer < 12 else "full" for layer in range(25)]
    model = replace(architectures()["openai/gpt-oss-20b"], layers=25, layer_types=tuple(kinds))

    layout = cache_layout(
        model, tensor_parallel=1, kv_cache_dtype="auto", max_num_batched_tokens=2048, block_size=16
    )

    assert [group.layers for group in layout.groups] == [12, 13]
    assert layout.bytes_per_block == 13 * 16 * 2 * 8 * 64 * 2


def test_every_pipeline_stage_has_its_share_of_each_group() -> None:
    arch = architectures()["google/gemma-3-27b-it"]

    for layers in Parallelism(pipeline=4).stages(arch.layers):
        stage = cache_layout(
            arch,
            tensor_parallel=1,
            kv_cache_dtype="auto",
            max_num_batched_tokens=2048,
            block_size=16,
            layers=layers,
        )
        assert sum(group.layers for group in stage.groups) == len(layers)
        assert len(stage.groups) == 7


def test_an_index_of_sparse_attention_is_cached_beside_the_latent() -> None:
    dense = architectures()["deepseek-ai/DeepSeek-V3"]
    assert dense.latent
    sparse = replace(dense, latent=replace(dense.latent, index_heads=64, index_dim=128))

    def bytes_of(arch: Architecture) -> int:
        return cache_layout(
            arch,
            tensor_parallel=8,
            kv_cache_dtype="auto",
            max_num_batched_tokens=2048,
            block_size=64,
        ).bytes_per_block

    assert bytes_of(sparse) - bytes_of(dense) == 61 * 64 * 132


@pytest.mark.parametrize(
    ("model", "ranks", "hybrid", "batched", "gib", "longest"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", 4, True, 2048, 5, 65520),
        ("google/gemma-3-27b-it", 1, True, 8192, 15, 92048),
        ("google/gemma-3-27b-it", 1, False, 8192, 15, 31680),
    ],
)
def test_the_longest_length_is_the_one_that_vllm_offers(
    model: str, ranks: int, hybrid: bool, batched: int, gib: int, longest: int
) -> None:
    """The planner's estimated maximum model length: one block of the pool is held back."""
    layout = cache_layout(
        architectures()[model],
        tensor_parallel=ranks,
        kv_cache_dtype="auto",
        max_num_batched_tokens=batched,
        block_size=16,
        rules=CacheRules(hybrid=hybrid),
    )

    assert layout.holds(Memory.gib(gib), longest)
    assert not layout.holds(Memory.gib(gib), longest + 1)
