"""Estimates from AIConfigurator: without it the bound is shown, labelled as such; with it they are below the
bound."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from modelyard.checkpoints import architectures
from modelyard.hardware import accelerators
from modelyard.hardware.tables import yaml_table
from modelyard.memory import aiconfigurator
from modelyard.memory.aiconfigurator import estimate_throughput, measured
from modelyard.memory.serving import Serving
from modelyard.memory.throughput import Throughput, roofline
from tests.unit.given import a_model, served

installed = pytest.mark.skipif(
    find_spec("aiconfigurator") is None, reason="needs `pip install modelyard[throughput]`"
)


def a_serving(uri: str, accelerator: str, **changes: object) -> Serving:
    found = served(a_model(model=f"hf://{uri}", accelerator=accelerator, **changes))
    assert isinstance(found, Serving), found
    return found


def test_without_it_the_roofline_bound_is_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiconfigurator, "find_spec", lambda name: None)
    serving = a_serving("Qwen/Qwen3-32B-FP8", "l40s")

    assert "not installed" in str(measured(serving))
    assert estimate_throughput(serving) == roofline(serving)


def test_its_table_names_what_there_is() -> None:
    table = yaml_table("aiconfigurator.yaml")

    assert set(table["systems"]) <= set(accelerators())
    assert set(table["sameShape"]) <= set(architectures())


@installed
@pytest.mark.parametrize(
    ("uri", "accelerator"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "h100"),
        ("Qwen/Qwen3-32B-FP8", "l40s"),
        ("openai/gpt-oss-120b", "h100"),
    ],
)
def test_measured_kernels_stay_below_the_bound(uri: str, accelerator: str) -> None:
    serving = a_serving(uri, accelerator, engine={"maxModelLen": 4096})

    estimate = measured(serving)

    assert isinstance(estimate, Throughput), estimate
    assert estimate.source == "aiconfigurator"
    assert not estimate.is_upper_bound
    assert 0 < estimate.output_per_second < roofline(serving).output_per_second


@installed
@pytest.mark.parametrize(
    ("uri", "accelerator", "reason"),
    [
        ("Qwen/Qwen3-8B", "trn2", "no measurements"),
        ("Qwen/Qwen3-8B", "l4", "no measurements"),
        ("Qwen/Qwen3-14B", "l40s", "carries no config.json"),
    ],
)
def test_it_is_not_asked_about_what_it_does_not_know(uri: str, accelerator: str, reason: str) -> None:
    serving = a_serving(uri, accelerator, engine={"maxModelLen": 4096})

    assert reason in str(measured(serving))
    assert estimate_throughput(serving) == roofline(serving)
