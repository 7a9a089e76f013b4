"""`modelyard smoke` and `bench` before their first request: what they refuse, and what they expect of a
model."""

from __future__ import annotations

import sys

import pytest

from modelyard.endpoint_tests.promises import bounds, expectations
from tests.unit.given import Modelyard, a_model, a_plan, an_environment


def test_the_expectations_are_those_of_the_file() -> None:
    model = a_model(
        model={"uri": "hf://Qwen/Qwen3-32B-FP8", "servedNames": ["house", "default"]},
        adapters=[{"name": "legal", "uri": "hf://acme/legal"}],
        engine={"maxModelLen": 8192},
        features={"tools": True},
        access={"apiKey": "clients"},
    )
    [plan] = a_plan(model, environment=an_environment(secrets={"clients": "lab/clients"})).models

    found = expectations(plan)

    assert (found.names, found.adapters, found.max_model_len) == (("house", "default"), ("legal",), 8192)
    assert (found.tools, found.reasoning, found.needs_key) == (True, False, True)


def test_the_bound_grows_with_clients_until_the_replicas_are_full() -> None:
    [plan] = a_plan(a_model(engine={"maxModelLen": 4096}, replicas=2)).models

    found = bounds(plan, 256, 64, [1, 2, 4, 1000, 4000])

    assert found[1] == found[2] < found[4] < found[1000] == found[4000]


def test_an_unknown_model_is_named_with_the_known_ones(modelyard: Modelyard) -> None:
    answer = modelyard("smoke", "nobody", "--env", "dev")

    assert answer.code == 1
    assert "no model 'nobody' in environment dev; planned: " in answer.err
    assert "qwen3-32b-fp8" in answer.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--requests", "5", "--duration", "5"], "exclude each other"),
        (["--concurrency", "1,0"], "numbers above 0"),
        (["--slo", "ttft=fast"], "ttft-p95=800ms"),
        (["--prompt-tokens", "200000"], "exceed the 16384 of qwen3-32b-fp8"),
    ],
)
def test_bench_refuses_what_it_cannot_ask(modelyard: Modelyard, options: list[str], says: str) -> None:
    answer = modelyard("bench", "qwen3-32b-fp8", "--env", "dev", *options)

    assert answer.code == 64
    assert says in answer.err


def test_a_url_without_a_scheme_is_refused(modelyard: Modelyard) -> None:
    answer = modelyard("smoke", "qwen3-32b-fp8", "--env", "dev", "--url", "localhost:8000")

    assert answer.code == 1
    assert "starts with http:// or https://" in answer.err


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("smoke", "openai", "modelyard[clients]"), ("bench", "llmeter", "modelyard[bench]")],
)
def test_a_missing_package_is_named_with_its_extra(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch, command: str, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    answer = modelyard(command, "qwen3-32b-fp8", "--env", "dev")

    assert answer.code == 1
    assert extra in answer.err
