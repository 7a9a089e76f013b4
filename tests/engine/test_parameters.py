"""Every matrix is counted: our sums against transformers' model classes, for the whole table and one model
per family."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures, modules, read_config
from modelyard.checkpoints.families import families
from tests.engine.installed import PYTHON, ROOT, require
from tests.engine.small_models import TEXT, VISION, Config

require()

# Families without a class in transformers: their code comes with the checkpoint.
REMOTE = {
    "InternLM2ForCausalLM",
    "InternLM3ForCausalLM",
    "InternVLChatModel",  # its tower is InternVLForConditionalGeneration's
    "KimiK25ForConditionalGeneration",  # transformers has it under another name
    "KimiVLForConditionalGeneration",
    "PixtralForConditionalGeneration",  # vLLM's class; a Llava model with Pixtral's tower
    "SolarForCausalLM",
}
# vLLM leaves out what no answer needs: the last layer of CLIP, SigLIP's pooling head.
UNUSED = {
    # Held twice: values that are the keys.
    "google/gemma-4-26B-A4B-it": -14_417_920,
    "google/gemma-4-31B-it": -110_100_480,
    "ibm-granite/granite-vision-3.3-2b": 15_238_352,
    "llava-hf/llava-1.5-7b-hf": 12_598_272,
    "llava-hf/llava-v1.6-mistral-7b-hf": 12_598_272,
}


def name_of(config: Config) -> str:
    return str(config["architectures"][0])


@cache
def table() -> dict[str, Config]:
    """The table's configs, one for those that only their quantization tells apart."""
    found: dict[str, tuple[str, Config]] = {}
    for model_id in architectures():
        config = architectures().config(model_id)
        config.pop("quantization_config", None)
        if name_of(config) not in REMOTE:
            found.setdefault(json.dumps(config, sort_keys=True), (model_id, config))
    return dict(found.values())


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What transformers counts, by config; one process builds all models on no device."""
    configs = [*table().values(), *TEXT, *VISION]
    answer = subprocess.run(
        [PYTHON, ROOT / "tests" / "engine" / "count_parameters.py"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home"))},
        input=json.dumps(configs),
        capture_output=True,
        check=False,
        text=True,
    )
    assert not answer.returncode, answer.stderr[-2000:]
    counts: list[dict[str, Any]] = json.loads(answer.stdout)
    assert [count["missing"] for count in counts if "missing" in count] == []
    return {json.dumps(config): count["parameters"] for config, count in zip(configs, counts, strict=True)}


def ours(config: Config) -> int:
    return sum(module.parameters for module in modules(read_config(config)))


@pytest.mark.parametrize("model_id", table())
def test_a_known_checkpoint_has_the_parameters_of_its_class(counted: dict[str, int], model_id: str) -> None:
    config = table()[model_id]

    expected = counted[json.dumps(config)] - UNUSED.get(model_id, 0)
    assert ours(config) == pytest.approx(expected, rel=0.00001)


@pytest.mark.parametrize("config", TEXT, ids=name_of)
def test_a_language_model_has_the_parameters_of_its_class(counted: dict[str, int], config: Config) -> None:
    assert ours(config) == pytest.approx(counted[json.dumps(config)], rel=0.00001)


@pytest.mark.parametrize("config", VISION, ids=name_of)
def test_a_vision_model_has_the_parameters_of_its_class(counted: dict[str, int], config: Config) -> None:
    assert ours(config) == pytest.approx(counted[json.dumps(config)], rel=0.001)


def test_every_family_is_counted() -> None:
    known = {*families()["text"], *families()["vision"]}

    assert known - {name_of(config) for config in (*TEXT, *VISION)} == REMOTE


def test_remote_families_are_those_without_a_class(tmp_path: Path) -> None:
    answer = subprocess.run(
        [PYTHON, ROOT / "tests" / "engine" / "count_parameters.py"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        input=json.dumps([{"architectures": [name]} for name in sorted(REMOTE)]),
        capture_output=True,
        check=True,
        text=True,
    )

    assert json.loads(answer.stdout) == [{"missing": name} for name in sorted(REMOTE)]
