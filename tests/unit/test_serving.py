"""Serving settings of a model on given accelerators, or every reason why it cannot run."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from modelyard.findings import Finding
from modelyard.hardware import Memory, accelerators
from modelyard.memory.parallelism import Parallelism, allowed_splits, split_problem
from modelyard.memory.serving import Serving
from modelyard.spec import Model, load_model
from tests.unit.given import a_model, served

IMPOSSIBLE = Path(__file__).parents[1] / "fixtures" / "qwen3-vl-8b-24gb.yaml"


def refused(model: Model) -> Finding:
    found = served(model)
    assert isinstance(found, list), f"{model.name} fits"
    [finding] = found
    return finding


def fits(model: Model) -> Serving:
    found = served(model)
    assert isinstance(found, Serving), found
    return found


@pytest.mark.parametrize("card", ["l4", "a10g"])
def test_a_length_that_cannot_fit_is_answered_with_the_length_that_does(card: str) -> None:
    """The fixture's 65536 tokens need 9 GiB; a 24 GB card has less than 2 GiB left after 16.3 GiB of
    weights."""
    model, _, _ = load_model(IMPOSSIBLE)
    assert model is not None
    impossible = a_model(**model.model_dump() | {"accelerator": card})

    finding = refused(impossible)

    assert finding.code == "KV001"
    assert "needs 9.0 GiB of KV cache" in finding.message
    longest = int(re.findall(r"a length of (\d+)", finding.fix)[0])
    shorter = a_model(**impossible.model_dump() | {"engine": {"maxModelLen": longest}})
    longer = a_model(**impossible.model_dump() | {"engine": {"maxModelLen": longest + 1}})
    assert fits(shorter).max_model_len == longest
    assert refused(longer).code == "KV001"


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"model": "hf://nobody/nothing"}, "MODEL001", "nobody/nothing"),
        ({"engine": {"maxModelLen": 1_000_000}}, "LEN001", "40960"),
        ({"accelerator": "l40s:3"}, "TP001", "use a count of 1, 2, 4"),
        (
            {"model": "hf://Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "accelerator": "l40s:4"},
            "TP001",
            "FP8 blocks of 128",
        ),
        ({"model": "hf://meta-llama/Llama-3.3-70B-Instruct", "accelerator": "l40s"}, "FIT001", "l40s:4"),
        ({"accelerator": "l4"}, "FIT001", "use l4:2 or a100:1"),
        ({"engine": {"maxModelLen": 40960}}, "KV001", "kvCacheDtype fp8, l40s:2 or h100:1"),
        ({"engine": {"maxModelLen": 16384, "concurrency": 8}}, "KV001", "for 8 requests"),
        ({"accelerator": "t4", "engine": {"dtype": "bfloat16"}}, "GPU001", "compute capability 7.5"),
        ({"accelerator": "trn2"}, "GPU001", "quantized with fp8, which trn2 cannot run"),
        ({"engine": {"name": "vllm-neuron"}}, "ENG001", "vllm-neuron on trn2"),
        ({"engine": {"version": "0.1.0"}}, "ENG001", "0.33.0"),
        ({"model": "hf://Qwen/Qwen2.5-7B-Instruct", "accelerator": "trn2"}, "ENG001", "Qwen2ForCausalLM"),
        ({"model": "hf://Qwen/Qwen3-8B", "accelerator": "trn1"}, "ENG001", "trn1"),
    ],
)
def test_a_model_that_cannot_run_says_why(changes: dict[str, Any], code: str, words: str) -> None:
    finding = refused(a_model(**changes))

    assert finding.code == code
    assert words in f"{finding.message}; {finding.fix}"


def test_without_a_length_the_model_gets_the_most_that_people_recognise() -> None:
    assert fits(a_model()).max_model_len == 16384  # 23216 fit
    assert fits(a_model(model="hf://Qwen/Qwen3-8B")).max_model_len == 40960  # the model's own limit


def test_an_old_gpu_runs_float16() -> None:
    assert fits(a_model(model="hf://Qwen/Qwen3-4B", accelerator="t4")).dtype == "float16"
    assert fits(a_model(model="hf://Qwen/Qwen3-4B", accelerator="l4")).dtype == "auto"


def test_an_unknown_repository_may_borrow_an_architecture() -> None:
    borrowed = a_model(model={"uri": "efs://mine/qwen", "architecture": "Qwen/Qwen3-8B"})

    assert fits(borrowed).arch.model_id == "Qwen/Qwen3-8B"


def test_trainium_counts_logical_cores() -> None:
    serving = fits(a_model(model="hf://Qwen/Qwen3-8B", accelerator="trn2:2", engine={"maxModelLen": 8192}))

    assert (serving.release.engine, serving.tensor_parallel) == ("vllm-neuron", 8)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", [1, 2, 4, 8, 16, 32, 64]),
        ("Qwen/Qwen3-32B-FP8", [1, 2, 4, 8]),  # 25600 columns are 200 blocks of 128
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", [1, 2]),  # 768 columns an expert are 6 blocks of 128
        ("Qwen/Qwen2.5-7B-Instruct", [1, 2, 4]),  # 28 heads
        ("Qwen/Qwen3-30B-A3B", [1, 2, 4, 8, 16, 32]),
    ],
)
def test_only_splits_that_divide_evenly_are_allowed(model: str, sizes: list[int]) -> None:
    assert allowed_splits(architectures()[model]) == sizes


def test_one_rank_is_always_a_split() -> None:
    assert [arch.model_id for arch in architectures().values() if split_problem(arch, Parallelism())] == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"engine": {"kvCacheDtype": "fp8"}}, "engine.kvCacheDtype"),
        ({"engine": {"dtype": "float16"}}, "engine.dtype"),
        ({"engine": {"enforceEager": True}}, "engine.enforceEager"),
        ({"adapters": [{"name": "legal", "uri": "hf://a/b"}]}, "adapters"),
        ({"speculativeDecoding": {}}, "speculativeDecoding"),
        ({"features": {"imagesPerPrompt": 2}}, "features.imagesPerPrompt"),
    ],
)
def test_a_setting_without_effect_on_neuron_is_refused(changes: dict[str, Any], field: str) -> None:
    finding = refused(a_model(model="hf://Qwen/Qwen3-8B", accelerator="trn2", **changes))

    assert (finding.code, ".".join(map(str, finding.field))) == ("ENG001", field)


def test_every_refusal_names_a_way_out() -> None:
    for model_id, card, count in product(architectures().repositories()[::4], accelerators(), (1, 3, 16)):
        found = served(a_model(model=f"hf://{model_id}", accelerator=f"{card}:{count}"))
        for finding in found if isinstance(found, list) else []:
            assert finding.fix.split()[-1] not in ("use", "of", "or"), finding


def test_what_a_finding_suggests_really_fits() -> None:
    """Every model on every card: the accelerators named as a way out take the same model at the same
    length."""
    suggested = 0
    for model_id, card in product(architectures().repositories()[::6], accelerators()):
        length = min(32768, architectures()[model_id].max_position)
        engine = {"maxModelLen": length, "concurrency": 4}
        asked = {"model": f"hf://{model_id}", "accelerator": card, "engine": engine}
        found = served(a_model(**asked))
        if isinstance(found, Serving) or found[0].code not in ("FIT001", "KV001"):
            continue
        for way in re.findall(r"\b[a-z][\w-]*:\d+\b", found[0].fix):
            there = asked | {"accelerator": way, "engine": engine if found[0].code == "KV001" else {}}
            assert isinstance(served(a_model(**there)), Serving), way
            suggested += 1
    assert suggested > 20


def test_the_cache_holds_what_was_asked_for() -> None:
    serving = fits(a_model(engine={"maxModelLen": 4096, "concurrency": 4}))

    assert serving.ledger.kv_cache >= serving.ledger.kv_need(4096) * 4 > Memory(0)
