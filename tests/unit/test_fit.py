"""Findings on a fit beyond weights and length, and the settings that the plan derives from it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modelyard.findings import Finding, Severity
from modelyard.hardware.accelerators import accelerator_named
from modelyard.memory.estimate import Estimate, estimate
from modelyard.memory.fit import Fit, fit_findings
from modelyard.memory.places import Places
from modelyard.memory.serving import Serving, plan_serving
from modelyard.planning import plan
from modelyard.spec import load_catalogue
from modelyard.spec.estimate import EstimateRequest
from tests.unit.given import a_model, a_plan, an_environment, codes, served


def answer(**question: Any) -> Estimate:
    return estimate(
        EstimateRequest.model_validate({"model": "Qwen/Qwen3-8B", "accelerator": "l40s", **question})
    )


def fitting(**changes: Any) -> Serving:
    found = served(a_model(**changes))
    assert isinstance(found, Serving), found
    return found


def unserved(**changes: Any) -> list[Finding]:
    found = served(a_model(**changes))
    assert isinstance(found, list), found
    return found


def test_graphs_outside_the_budget_need_room_beside_it() -> None:
    """vLLM 0.19 captures graphs on top of the budget; 0.33 takes them off it."""
    large = {"model": "Qwen/Qwen2.5-72B-Instruct", "accelerator": "a100", "tensorParallel": 4}
    crowded = answer(**large, gpuMemoryUtilization=0.97, maxModelLen=1024, engineVersion="0.19.0")
    current = answer(**large, gpuMemoryUtilization=0.97, maxModelLen=1024, engineVersion="0.33.0")

    assert "UTIL001" in codes(crowded.findings)
    assert "UTIL001" not in codes(current.findings)
    fix = next(f.fix for f in crowded.findings if f.code == "UTIL001")
    lower = float(re.findall(r"[\d.]+", fix)[0])
    mended = answer(**large, gpuMemoryUtilization=lower, maxModelLen=1024, engineVersion="0.19.0")
    assert "UTIL001" not in codes(mended.findings)


def test_a_batch_has_room_for_its_sequences() -> None:
    found = answer(maxNumSeqs=512, maxNumBatchedTokens=256)

    assert codes(found.findings) == ["BATCH001"]
    assert not found.fits


def test_a_file_that_states_too_many_sequences_is_refused_at_their_line(tmp_path: Path) -> None:
    (tmp_path / "qwen.yaml").write_text(
        "model: hf://Qwen/Qwen3-32B-FP8\naccelerator: l40s\nreplicas: 2\nengine:\n"
        "  maxNumBatchedTokens: 256\n  maxNumSeqs: 512\n  maxModelLen: 8192\n",
        encoding="utf-8",
    )

    catalogue, problems = load_catalogue(tmp_path)
    [found] = [f for f in plan(catalogue, an_environment(), problems).findings if f.code == "BATCH001"]

    assert found.location is not None
    assert (Path(found.location.file).name, found.location.line) == ("qwen.yaml", 6)
    assert found.field == ("engine", "maxNumSeqs")
    assert found.message == "maxNumBatchedTokens 256 is below maxNumSeqs 512"
    assert found.fix == "use maxNumSeqs 256 or less, or maxNumBatchedTokens 512 or more"


def test_stated_sequences_beyond_the_default_batch_are_refused_as_well() -> None:
    assert codes(unserved(engine={"maxNumSeqs": 4096, "maxModelLen": 8192})) == ["BATCH001"]


def test_default_sequences_are_lowered_to_a_stated_batch() -> None:
    found = fitting(accelerator="h200", model="hf://Qwen/Qwen3-0.6B", engine={"maxNumBatchedTokens": 300})

    assert (found.max_num_seqs, found.max_num_batched_tokens) == (300, 300)


def test_a_batch_that_contradicts_itself_is_told_beside_what_does_not_fit() -> None:
    crowded = {"maxNumSeqs": 512, "maxNumBatchedTokens": 256}

    assert codes(unserved(model="hf://Qwen/Qwen2.5-72B-Instruct", engine=crowded)) == ["FIT001", "BATCH001"]


@pytest.mark.parametrize(
    "stated", [{}, {"maxModelLen": 512}, {"maxModelLen": 512, "maxNumBatchedTokens": 512}]
)
def test_a_text_that_is_read_at_once_fits_into_a_batch(stated: dict[str, int]) -> None:
    found = fitting(model="hf://BAAI/bge-m3", task="embed", engine=stated)
    asked = answer(model="BAAI/bge-m3", accelerator="l40s", **stated)

    assert found.max_model_len == stated.get("maxModelLen", 8192)
    assert found.max_num_batched_tokens >= found.max_model_len
    assert asked.ledger is not None
    assert asked.ledger.request.max_num_batched_tokens == found.max_num_batched_tokens


def test_a_stated_batch_below_an_encoders_text_is_refused_and_not_raised_in_silence() -> None:
    stated = {"maxModelLen": 4096, "maxNumBatchedTokens": 2048}
    asked = answer(model="BAAI/bge-m3", accelerator="l40s", **stated)

    assert codes(unserved(model="hf://BAAI/bge-m3", task="embed", engine=stated)) == ["BATCH001"]
    assert (asked.findings[0].code, asked.findings[0].field) == ("BATCH001", ("maxNumBatchedTokens",))
    assert asked.findings[0].fix == "use maxNumBatchedTokens 4096 or more, or maxModelLen 2048 or less"


def test_llama_server_refuses_such_a_batch_as_well() -> None:
    def asked(**engine: int) -> Serving | list[Finding]:
        gguf = {"uri": "hf://gpustack/bge-m3-GGUF", "file": "bge-m3-Q8_0.gguf", "architecture": "BAAI/bge-m3"}
        model = a_model(model=gguf, task="embed", accelerator="none:4", engine=engine)
        kind = accelerator_named("none")
        assert kind is not None
        return plan_serving(model, kind, 4)

    refused, default = asked(maxModelLen=4096, maxNumBatchedTokens=2048), asked(maxNumBatchedTokens=2048)

    assert isinstance(refused, list)
    assert codes(refused) == ["BATCH001"]
    assert isinstance(default, Serving)
    assert (default.max_model_len, default.max_num_batched_tokens) == (2048, 2048)


def test_the_default_length_of_an_encoder_follows_from_a_stated_batch() -> None:
    found = fitting(model="hf://BAAI/bge-m3", task="embed", engine={"maxNumBatchedTokens": 2048})

    assert (found.max_model_len, found.max_num_batched_tokens) == (2048, 2048)


def test_an_image_longer_than_the_prompt_is_a_warning() -> None:
    short = answer(model="Qwen/Qwen3-VL-8B-Instruct", maxModelLen=8192)
    long = answer(model="Qwen/Qwen3-VL-8B-Instruct", maxModelLen=32768)

    assert codes(short.findings) == ["IMG001"]
    assert short.fits
    assert codes(long.findings) == []


def test_no_image_is_too_long_where_none_is_allowed() -> None:
    found = answer(model="Qwen/Qwen3-VL-8B-Instruct", maxModelLen=8192)
    assert found.ledger is not None
    ledger = replace(found.ledger, request=replace(found.ledger.request, image_limit=0))
    fit = Fit(ledger, 8192, 8192)

    assert "IMG001" not in codes(fit_findings(fit, Places.in_question(found.request)))


def test_a_family_without_measurements_is_said_to_be_one() -> None:
    config = {
        "architectures": ["SmolLM3ForCausalLM"],
        "model_type": "smollm3",
        "hidden_size": 2048,
        "num_hidden_layers": 36,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "intermediate_size": 11008,
        "vocab_size": 128256,
        "max_position_embeddings": 65536,
        "tie_word_embeddings": True,
    }
    found = answer(model=None, config=config)

    assert codes(found.findings) == ["MODEL004"]
    assert found.findings[0].level is Severity.WARNING
    assert found.fits


def test_a_length_beyond_the_models_own_is_a_warning_to_whoever_estimates() -> None:
    found = answer(maxModelLen=65536)

    assert codes(found.findings) == ["LEN001"]
    assert found.fits


def test_a_batch_is_no_larger_than_the_cache_sustains() -> None:
    serving = fitting()
    tokens = serving.ledger.kv_tokens(serving.max_model_len)

    assert serving.max_num_seqs < 256  # the engine's default on an L40S
    assert serving.max_num_seqs % 8 == 0
    assert tokens / serving.max_num_seqs >= 512


def test_a_batch_that_the_cache_sustains_keeps_the_engines_default() -> None:
    assert fitting(model="hf://Qwen/Qwen3-0.6B").max_num_seqs == 256


def test_a_batch_that_is_asked_for_stays() -> None:
    asked = a_model(engine={"maxNumSeqs": 256})

    assert fitting(engine={"maxNumSeqs": 256}).max_num_seqs == 256
    assert "KV002" in codes(a_plan(asked).findings)


def test_fewer_sequences_leave_more_for_the_cache() -> None:
    assert fitting().ledger.kv_cache > fitting(engine={"maxNumSeqs": 256}).ledger.kv_cache


def test_a_higher_utilization_is_offered_where_it_is_enough() -> None:
    found = served(a_model(engine={"maxModelLen": 32768}))

    assert isinstance(found, list)
    assert "gpuMemoryUtilization 0.95" in found[0].fix
    assert fitting(engine={"maxModelLen": 32768, "gpuMemoryUtilization": 0.95})


@pytest.mark.parametrize(("length", "offered"), [(40960, False), (32768, True)])
def test_a_utilization_that_is_not_enough_is_not_offered(length: int, offered: bool) -> None:
    found = served(a_model(engine={"maxModelLen": length}))

    assert isinstance(found, list)
    assert ("gpuMemoryUtilization" in found[0].fix) is offered


def test_ways_out_have_prices_where_the_environment_has_a_region() -> None:
    (finding,) = [f for f in a_plan(a_model(engine={"maxModelLen": 40960})).findings if f.code == "KV001"]

    assert re.search(r"l40s:2 \(g6e\.\w+, \$\d+\.\d\d/h\)", finding.fix)


def test_only_the_engine_of_an_accelerator_runs_on_it() -> None:
    assert codes(answer(engine="vllm-neuron").findings) == ["ENG001"]
    assert codes(answer(accelerator="trn2").findings) == ["ENG001"]
    assert answer(accelerator="trn2", engine="vllm-neuron", tensorParallel=4).fits


def test_a_capability_beside_a_named_accelerator_is_its_own() -> None:
    assert codes(answer(computeCapability="9.0").findings) == ["SPEC003"]
    assert answer(computeCapability="8.9").fits


LLAMA_SERVER = {
    "engine": "llama-server",
    "model": "Qwen/Qwen2.5-72B-Instruct",
    "quantization": "gguf q4_k_m",
    "accelerator": None,
    "acceleratorMemoryGiB": 31.4,
    "computeCapability": "12.0",
    "tensorParallel": 2,
}


def test_llama_server_holds_a_72b_in_four_bits_on_two_cards_of_32_gb() -> None:
    assert answer(**LLAMA_SERVER, maxModelLen=8192, maxNumSeqs=4).fits


def test_llama_server_allocates_every_slots_cache_at_start() -> None:
    one = answer(**LLAMA_SERVER, maxModelLen=8192, maxNumSeqs=1)
    eight = answer(**LLAMA_SERVER, maxModelLen=32768, maxNumSeqs=8)

    assert one.fits
    assert codes(eight.findings) == ["KV001"]
    layers = int(re.findall(r"nGpuLayers (\d+)", eight.findings[0].fix)[0])
    assert 0 < layers < 80
    assert answer(**LLAMA_SERVER, maxModelLen=32768, maxNumSeqs=8, nGpuLayers=layers).fits
    assert not answer(**LLAMA_SERVER, maxModelLen=32768, maxNumSeqs=8, nGpuLayers=layers + 1).fits


def test_layers_that_are_not_offloaded_take_no_gpu_memory() -> None:
    some = answer(**LLAMA_SERVER, maxModelLen=8192, nGpuLayers=40).ledger
    none = answer(**LLAMA_SERVER, maxModelLen=8192, nGpuLayers=0).ledger
    whole = answer(**LLAMA_SERVER, maxModelLen=8192).ledger
    assert some is not None
    assert none is not None
    assert whole is not None

    assert none.weights.in_bytes == 0
    assert some.weights.in_gib == pytest.approx(whole.weights.in_gib / 2, rel=0.05)


def test_llama_server_splits_layers_over_any_number_of_gpus() -> None:
    three = answer(**LLAMA_SERVER | {"tensorParallel": 3}, maxModelLen=8192)

    assert codes(three.findings) == []
    assert three.fits
