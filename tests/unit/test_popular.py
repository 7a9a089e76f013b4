"""What people serve is known offline: tests/fixtures/popular.txt, a list that was fixed before its rows."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.engines import newest_release
from modelyard.findings import Finding
from modelyard.memory.estimate import estimate
from modelyard.memory.kv_cache import cache_layout
from modelyard.memory.loaded_model import known_architecture
from modelyard.memory.weights import weights_per_accelerator
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.model import Model

FILE = Path(__file__).parents[1] / "fixtures" / "popular.txt"
LINES = FILE.read_text(encoding="utf-8").splitlines()
POPULAR = [line for line in LINES if line and not line.startswith("#")]
KNOWN = [model for model in POPULAR if model in architectures()]
UNKNOWN = [model for model in POPULAR if model not in architectures()]
VLLM = newest_release("vllm")
# Meta's first vision models: vLLM dropped their class, other engines have it.
NOT_IN_VLLM = {"MllamaForConditionalGeneration"}


def read(weights: dict[str, Any] | str, **more: Any) -> Architecture | Finding:
    return known_architecture(
        Model.model_validate({"name": "chat", "accelerator": "l40s", "replicas": 1, "model": weights, **more})
    )


def refused(weights: dict[str, Any] | str, **more: Any) -> Finding:
    found = read(weights, **more)
    assert isinstance(found, Finding), found
    return found


def test_the_list_is_dated_and_long_enough_and_names_each_model_once() -> None:
    dated = re.search(r"\d{4}-\d{2}-\d{2}", LINES[0])

    assert dated
    assert date.fromisoformat(dated.group()) >= date(2026, 11, 22)
    assert len(POPULAR) >= 150
    assert len({model.lower() for model in POPULAR}) == len(POPULAR)
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+", model) for model in POPULAR)


def test_the_table_stays_small_with_one_row_a_line() -> None:
    text = files("modelyard.checkpoints").joinpath("data", "architectures.json").read_text(encoding="utf-8")

    assert len(text) < 250_000
    assert text.count('\n  "') == len(architectures())


def test_nine_of_ten_are_known() -> None:
    assert len(KNOWN) >= 0.9 * len(POPULAR), UNKNOWN


@pytest.mark.parametrize("model", KNOWN)
def test_a_known_one_can_be_planned(model: str) -> None:
    arch = architectures()[model]
    layout = cache_layout(
        arch, tensor_parallel=1, kv_cache_dtype="auto", max_num_batched_tokens=2048, block_size=16
    )

    assert weights_per_accelerator(arch).in_gib > 0
    assert (layout.need(1024).in_bytes > 0) is not arch.encoder
    assert arch.architecture in VLLM.architectures | NOT_IN_VLLM


@pytest.mark.parametrize("model", UNKNOWN)
def test_each_of_the_others_is_refused_with_the_command_that_adds_it(model: str) -> None:
    found = refused(f"hf://{model}")

    assert found.code == "MODEL001"
    assert f"'{model}'" in found.message
    assert f"`modelyard model add hf://{model}`" in found.fix


@pytest.mark.parametrize("model", [model for model in KNOWN if model.lower().endswith("gguf")])
def test_a_gguf_repository_needs_the_name_of_its_file(model: str) -> None:
    found = refused(f"hf://{model}")
    one = read({"uri": f"hf://{model}", "file": "model-Q4_K_M.gguf"})

    assert found.code == "MODEL005"
    assert f"write `model: {{uri: hf://{model}, file: NAME.gguf}}`" in found.fix
    assert isinstance(one, Architecture)
    assert one.quantization
    assert one.quantization.method == "gguf"
    assert one.architecture in newest_release("llama-server").architectures


def test_a_model_that_transcribes_is_refused_by_what_it_does() -> None:
    with pytest.raises(UnreadableConfig, match="WhisperForConditionalGeneration transcribes speech"):
        read_config({"architectures": ["WhisperForConditionalGeneration"], "d_model": 1280})


def test_the_estimate_of_a_gguf_repository_asks_for_the_format() -> None:
    asked = {"model": "Qwen/Qwen3-8B-GGUF", "accelerator": "l40s", "engine": "llama-server"}
    found = estimate(EstimateRequest.model_validate(asked))
    stated = estimate(EstimateRequest.model_validate({**asked, "quantization": "gguf Q4_K_M"}))

    assert [one.code for one in found.findings] == ["MODEL005"]
    assert stated.ledger
    assert stated.ledger.weights.in_gib < 6


@pytest.mark.parametrize(
    ("name", "base", "fix"),
    [
        ("acme/Qwen3-8B-medical", "Qwen/Qwen3-8B", "architecture: Qwen/Qwen3-8B}"),
        ("unsloth/gemma-3-27b-it", "google/gemma-3-27b-it", "architecture: google/gemma-3-27b-it}"),
        ("acme/Dolphin-Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "architecture: meta-llama/Llama-3.1-8B-"),
        ("acme/Qwen3-8B-medical-AWQ", "Qwen/Qwen3-8B in AWQ", "config: qwen3-8b-medical-awq.json}"),
        ("acme/Qwen3-8B-medical-AWQ", "Qwen/Qwen3-8B in AWQ", "architecture: Qwen/Qwen3-8B-AWQ}"),
        ("acme/Qwen3-4B-GPTQ-Int8", "Qwen/Qwen3-4B in GPTQ", "config: qwen3-4b-gptq-int8.json}"),
        ("acme/phi-4-quantized.w4a16", "microsoft/phi-4 in w4a16", "config: phi-4-quantized.w4a16.json}"),
        ("unsloth/Qwen3-14B-bnb-4bit", "Qwen/Qwen3-14B in bnb-4bit", "config: qwen3-14b-bnb-4bit.json}"),
        ("unsloth/Qwen3-14B-GGUF", "Qwen/Qwen3-14B in GGUF", "file: NAME.gguf, architecture: Qwen/Qwen3-14B}"),
    ],
)  # fmt: skip
def test_a_derivative_is_named_with_its_base_and_what_to_write(name: str, base: str, fix: str) -> None:
    found = refused(f"hf://{name}")

    assert found.code == "MODEL001"
    assert found.message == f"no architecture facts for '{name}', which looks like {base}"
    assert f"`model: {{uri: hf://{name}, " in found.fix
    assert fix in found.fix


def test_a_longer_version_number_is_not_taken_for_a_known_one() -> None:
    assert "looks like" not in refused("hf://deepseek-ai/DeepSeek-V3.9").message


def test_a_misspelled_id_gets_the_nearest_known_one() -> None:
    assert "did you mean 'Qwen/Qwen3-8B'?" in refused("hf://Qwen/Qwen3_8B").fix
    assert "did you mean 'Qwen/Qwen3-8B'?" in refused({"uri": "efs://a", "architecture": "Qwen/Qwen3 8B"}).fix


@pytest.mark.parametrize(
    ("uri", "architecture", "says"),
    [
        ("hf://acme/Qwen3-8B-AWQ", "Qwen/Qwen3-8B", "says AWQ, and the facts that the file gives say 16 bit"),
        (
            "efs://acme/qwen3-8b-fp8",
            "Qwen/Qwen3-8B",
            "says fp8, and the facts that the file gives say 16 bit",
        ),
        (
            "hf://acme/Qwen3-8B-FP8",
            "Qwen/Qwen3-8B-AWQ",
            "says FP8, and the facts that the file gives say 4 bit",
        ),
        ("hf://acme/Qwen3-8B-GGUF", "Qwen/Qwen3-8B", "holds GGUF files, and the model file names none"),
    ],
)
def test_a_quantized_name_is_never_planned_with_other_facts(uri: str, architecture: str, says: str) -> None:
    found = refused({"uri": uri, "architecture": architecture})

    assert found.code == "MODEL005"
    assert says in found.message
    assert f"`model: {{uri: {uri}, " in found.fix


def test_an_engine_that_quantizes_at_load_does_not_make_the_format_in_the_name() -> None:
    found = refused(
        {"uri": "hf://acme/Qwen3-8B-AWQ", "architecture": "Qwen/Qwen3-8B"}, engine={"quantization": "fp8"}
    )

    assert (found.code, "say 8 bit" in found.message) == ("MODEL005", True)


def test_a_config_that_says_how_it_is_quantized_is_taken_whatever_the_name_says() -> None:
    config = architectures().config("Qwen/Qwen3-8B-FP8")

    assert isinstance(read({"uri": "hf://acme/Qwen3-8B-NVFP4-FP8", "config": config}), Architecture)


def test_a_config_without_the_quantization_that_the_name_has_is_refused() -> None:
    config = architectures().config("Qwen/Qwen3-8B")
    found = refused({"uri": "hf://acme/Qwen3-8B-FP8", "config": config})

    assert (found.code, found.field) == ("MODEL005", ("model", "config"))


@pytest.mark.parametrize(
    "model",
    [
        {"model": {"uri": "hf://acme/Qwen3-8B-AWQ", "architecture": "Qwen/Qwen3-8B-AWQ"}},
        {"model": {"uri": "hf://acme/Qwen3-8B-w4a16", "architecture": "Qwen/Qwen3-32B-AWQ"}},
        {"model": {"uri": "hf://acme/Qwen3-8B-FP8", "architecture": "Qwen/Qwen3-8B"}, "engine": {"quantization": "fp8"}},
        {"model": {"uri": "hf://acme/Qwen3-8B-GGUF", "architecture": "Qwen/Qwen3-8B", "file": "a-Q8_0.gguf"}},
        {"model": {"uri": "efs://acme/awkward", "architecture": "Qwen/Qwen3-8B"}},
    ],
)  # fmt: skip
def test_a_stated_format_is_taken(model: dict[str, Any]) -> None:
    assert isinstance(
        known_architecture(
            Model.model_validate({"name": "chat", "accelerator": "l40s", "replicas": 1, **model})
        ),
        Architecture,
    )
