"""The KV cache against vLLM's own layout: groups, blocks and bytes of every pipeline stage, for named and
random models."""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import Any

import pytest

from modelyard.checkpoints import Architecture, architectures, read_config
from modelyard.engines import CacheRules
from modelyard.hardware import Memory
from modelyard.memory.kv_cache import CacheLayout, cache_layout
from modelyard.memory.parallelism import Parallelism
from tests.engine.installed import PYTHON, ROOT, require
from tests.engine.small_models import TEXT, Config

require()

Question = dict[str, Any]

GEMMA = "google/gemma-3-27b-it"
NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
KIMI = "cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit"
RANDOM = 400  # models that are drawn


def config_of(model_id: str) -> Config:
    """The language model's config of a known checkpoint."""
    config = architectures().config(model_id)
    config.pop("quantization_config", None)
    text = config.get("text_config")
    if text is None:
        return config
    [name] = {"gemma3": ["Gemma3ForCausalLM"]}[config["model_type"]]
    return {**text, "architectures": [name]}


def small(architecture: str, **fields: Any) -> Config:
    config = next(c for c in TEXT if c["architectures"] == [architecture])
    return config | fields


def ask(config: Config, **changes: Any) -> Question:
    question: Question = {
        "config": config,
        "tensor": 1,
        "pipeline": 1,
        "dtype": "auto",
        "block_size": 16,
        "length": 32768,
        "batched": 8192,
        "hybrid": True,
        "state": "auto",
        "available": 20 << 30,
    }
    assert set(changes) <= set(question)
    return question | changes


def mixed(full: int, sliding: int, window: int = 1024, seed: int = 0) -> Config:
    """A model with layers of both kinds in any order."""
    kinds = ["full_attention"] * full + ["sliding_attention"] * sliding
    random.Random(seed).shuffle(kinds)
    return small(
        "GptOssForCausalLM",
        num_hidden_layers=len(kinds),
        layer_types=kinds,
        sliding_window=window,
        max_position_embeddings=1 << 20,
    )


def named() -> list[Question]:
    hybrids = [
        ask(config_of(model), tensor=tensor, dtype=dtype, length=65536)
        for model in (NEXT, KIMI)
        for tensor in (1, 2, 4, 8)
        for dtype in ("auto", "fp8")
    ]
    mamba = [
        ask(config, tensor=tensor, dtype=dtype)
        for config in TEXT
        if config["architectures"][0] in ("GraniteMoeHybridForCausalLM", "NemotronHForCausalLM")
        for tensor in (1, 2)
        for dtype in ("auto", "fp8")
    ]
    latent = [
        ask(config_of(model), tensor=tensor, dtype=dtype, block_size=64)
        for model in ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V2-Lite-Chat")
        for tensor in (1, 8)
        for dtype in ("auto", "fp8", "fp8_ds_mla")
    ]
    sparse = [
        ask(small("DeepseekV32ForCausalLM", index_head_dim=128), block_size=64, dtype=dtype)
        for dtype in ("auto", "fp8_ds_mla")
    ]
    shapes = [
        (13, 13),
        (4, 22),
        (6, 28),
        (10, 52),
        (30, 32),
        (20, 30),
        (21, 30),
        (32, 30),
        (1, 7),
        (0, 12),
        (12, 0),
    ]
    windows = [
        ask(mixed(full, sliding), pipeline=pipeline, hybrid=hybrid)
        for full, sliding in shapes
        for pipeline in (1, 2, 3)
        for hybrid in (True, False)
        if hybrid or full  # windows alone are kept whatever the setting says, which no release of ours needs
    ]
    gemma = [ask(config_of(GEMMA), tensor=2, pipeline=pipeline) for pipeline in (1, 2, 4)]
    staged = [ask(config_of(NEXT), tensor=4, pipeline=pipeline) for pipeline in (2, 3)]
    return [*hybrids, *mamba, *latent, *sparse, *windows, *gemma, *staged]


def drawn(chance: random.Random) -> Question:
    pipeline = chance.choice([1, 1, 2, 3, 4])
    full = chance.randint(0, 40)
    sliding = chance.randint(0 if full >= pipeline else pipeline - full, 60)
    heads = chance.choice([1, 2, 4, 8, 16])
    config = mixed(full, sliding, window=chance.choice([128, 512, 1000, 4096]), seed=chance.randint(0, 999))
    return ask(
        config | {"num_key_value_heads": heads, "head_dim": chance.choice([64, 80, 128, 256])},
        tensor=chance.choice([1, 2, 4, 8]),
        pipeline=pipeline,
        dtype=chance.choice(["auto", "fp8"]),
        block_size=chance.choice([16, 32, 64]),
        length=chance.randint(1, 1 << 20),
        batched=chance.choice([512, 2048, 8192, 16384]),
        hybrid=not full or chance.random() < 0.8,
        available=chance.randint(1 << 28, 1 << 37),
    )


QUESTIONS = [*named(), *(drawn(random.Random(seed)) for seed in range(RANDOM))]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """vLLM's answers, a list of stages each; one process gives all."""
    answer = subprocess.run(
        [PYTHON, ROOT / "tests" / "engine" / "plan_kv_cache.py"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path_factory.mktemp("home")),
            "VLLM_NO_USAGE_STATS": "1",
        },
        input=json.dumps(QUESTIONS),
        capture_output=True,
        check=False,
        text=True,
    )
    assert not answer.returncode, answer.stderr[-3000:]
    found: list[list[dict[str, Any]]] = json.loads(answer.stdout)
    return found


def ours(question: Question) -> list[dict[str, Any]]:
    arch = read_config(question["config"])
    stages = Parallelism(question["tensor"], question["pipeline"]).stages(arch.layers)
    return [answer(question, stage_layout(question, arch, layers)) for layers in stages]


def stage_layout(question: Question, arch: Architecture, layers: range) -> CacheLayout:
    return cache_layout(
        arch,
        tensor_parallel=question["tensor"],
        kv_cache_dtype=question["dtype"],
        max_num_batched_tokens=question["batched"],
        block_size=question["block_size"],
        pipeline=question["pipeline"],
        layers=layers,
        rules=CacheRules(hybrid=question["hybrid"]),
    )


def answer(question: Question, layout: CacheLayout) -> dict[str, Any]:
    available = Memory.bytes(question["available"])
    return {
        "groups": sorted(group.layers for group in layout.groups),
        "block_size": layout.block_size,
        "bytes_per_block": layout.bytes_per_block,
        "needed": layout.need(question["length"]).in_bytes,
        "blocks": layout.blocks(available),
        "tokens": layout.tokens(available, question["length"]),
    }


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_the_cache_is_laid_out_as_vllm_does(answers: list[list[dict[str, Any]]], number: int) -> None:
    assert ours(QUESTIONS[number]) == answers[number]
