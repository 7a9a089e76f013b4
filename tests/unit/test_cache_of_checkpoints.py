"""Checkpoints that ask for an fp8 KV cache, and the releases that follow them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from modelyard.checkpoints.quantization import read_quantization
from modelyard.engines import memory_facts
from modelyard.hardware import accelerators
from modelyard.memory.ledger import memory_ledger
from modelyard.memory.parallelism import Parallelism
from modelyard.memory.requests import Run

EIGHT = {"dynamic": False, "num_bits": 8, "type": "float"}
FP8 = {"quant_method": "modelopt", "quant_algo": "FP8"}
LLAMA = replace(
    architectures()["meta-llama/Llama-3.3-70B-Instruct"],
    quantization=read_quantization({**FP8, "kv_cache_scheme": EIGHT}),
)


def run(version: str, arch: Any = LLAMA, cache: str = "auto") -> Run:
    return Run(
        arch, accelerators()["h100"], memory_facts("vllm", version), Parallelism(2), kv_cache_dtype=cache
    )


@pytest.mark.parametrize(
    ("config", "cache"),
    [
        ({**FP8, "kv_cache_quant_algo": "FP8"}, "fp8"),  # older exports of ModelOpt
        ({**FP8, "kv_cache_scheme": "FP8"}, "fp8"),
        ({**FP8, "kv_cache_scheme": EIGHT}, "fp8"),  # newer ones
        ({**FP8, "quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8"),  # hf_quant_config.json
        ({**FP8, "kv_cache_scheme": {**EIGHT, "dynamic": True}}, ""),
        ({**FP8, "kv_cache_quant_algo": "INT8"}, ""),
        ({**FP8, "kv_cache_quant_algo": None}, ""),
        (FP8, ""),
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": EIGHT}, "fp8"),
        ({"quant_method": "fp8", "kv_cache_scheme": EIGHT}, ""),  # another method's word is not read
    ],
    ids=str,
)
def test_a_checkpoint_says_how_its_cache_is_stored(config: dict[str, Any], cache: str) -> None:
    stored = read_quantization(config)

    assert stored is not None
    assert stored.cache == cache


@pytest.mark.parametrize(
    ("version", "method", "cache"),
    [
        ("0.13.0", "modelopt", "auto"),
        ("0.14.1", "modelopt", "fp8"),
        ("0.33.0", "modelopt", "fp8"),
        ("0.14.1", "compressed-tensors", "auto"),
        ("0.15.1", "compressed-tensors", "fp8"),
    ],
)
def test_the_release_decides_whether_it_follows(version: str, method: str, cache: str) -> None:
    stored = read_quantization({"quant_method": method, "quant_algo": "FP8", "kv_cache_scheme": EIGHT})

    assert run(version, replace(LLAMA, quantization=stored)).at(8192).kv_cache_dtype == cache


def test_what_the_file_says_wins() -> None:
    assert run("0.33.0", cache="fp8").cache_dtype == "fp8"
    assert run("0.33.0", replace(LLAMA, quantization=None)).cache_dtype == "auto"


def test_half_the_cache_is_needed() -> None:
    followed, before = (memory_ledger(run(version).at(8192)) for version in ("0.14.1", "0.13.0"))

    assert followed.kv_need(8192).in_bytes == before.kv_need(8192).in_bytes / 2
