"""The smoke checks, through the real OpenAI client, against correct endpoints and endpoints with a single
defect."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations
from modelyard.endpoint_tests.smoke import CHECKS, SmokeResult, run_checks
from tests.contract.fake_openai import DIMENSION, KEY, LENGTH, serving

GENERATE = Expectations(
    model="tiny",
    names=("tiny", "acme/tiny"),
    adapters=("legal",),
    max_model_len=LENGTH,
    tools=True,
    reasoning=True,
    needs_key=True,
)
EMBED = replace(GENERATE, task="embed", dimension=DIMENSION, adapters=(), tools=False, reasoning=False)
RERANK = replace(EMBED, task="rerank", dimension=None)


def checked(expected: Expectations, *, broken: str = "") -> SmokeResult:
    with serving(broken=broken) as server:
        return run_checks(expected, EndpointAddress(server.url, KEY, timeout=60), wait=5)


def failed(result: SmokeResult) -> list[str]:
    return [each.name for each in result.results if each.outcome == "failed"]


@pytest.mark.parametrize("expected", [GENERATE, EMBED, RERANK], ids=lambda e: str(e.task))
def test_an_endpoint_that_is_right_passes_every_check(expected: Expectations) -> None:
    result = checked(expected)

    assert [(each.name, each.outcome, each.reason) for each in result.results] == [
        (name, "passed", "") for name in ("reachable", *CHECKS[expected.task])
    ]
    assert result.passed


@pytest.mark.parametrize(
    ("broken", "check", "says"),
    [
        ("model id", "models", "not listed: tiny"),
        ("length", "models", "max_model_len is 256, planned 512"),
        ("open", "authentication", "no key gives HTTP 200"),
        ("any model", "unknown-model", "answered instead of HTTP 404"),
        ("adapter", "adapters", "adapter not loaded"),
        ("no usage of chat.completion", "chat", "reports no usage"),
        ("restless", "same-answer", "all different"),
        ("cut off", "streaming", "without a finish reason"),
        ("one piece", "streaming", "in 1 piece"),
        ("no usage in stream", "streaming", "no usage"),
        ("any length", "context-limit", "answered instead of HTTP 400"),
        ("schema", "structured-output", "breaks its schema"),
        ("tool arguments", "tool-call", "not JSON"),
        ("no tool call", "tool-call", "no tool call"),
        ("mixed reasoning", "reasoning", "<think>"),
    ],
)
def test_a_defect_of_a_generating_endpoint_fails_its_own_check(broken: str, check: str, says: str) -> None:
    result = checked(GENERATE, broken=broken)

    assert failed(result) == [check]
    assert not result.passed
    [reason] = [each.reason for each in result.results if each.name == check]
    assert says in reason


@pytest.mark.parametrize(
    ("expected", "broken", "check"),
    [
        (EMBED, "zero vectors", "embeddings"),
        (EMBED, "one vector", "embeddings"),
        (EMBED, "dimension", "embeddings"),
        (EMBED, "any length", "input-limit"),
        (RERANK, "unsorted", "rerank"),
        (RERANK, "one score", "rerank"),
    ],
)
def test_a_defect_of_a_pooling_endpoint_fails_its_own_check(
    expected: Expectations, broken: str, check: str
) -> None:
    assert failed(checked(expected, broken=broken)) == [check]


def test_an_empty_completion_fails_whatever_completes() -> None:
    assert failed(checked(GENERATE, broken="empty completion")) == ["completion", "served-names"]


def test_an_engine_that_broke_fails_what_it_answers_and_says_what_it_said() -> None:
    result = checked(GENERATE, broken="500 /chat/completions")

    assert failed(result) == [
        "chat",
        "same-answer",
        "streaming",
        "structured-output",
        "tool-call",
        "reasoning",
    ]
    assert "EngineCore encountered an issue" in next(r.reason for r in result.results if r.name == "chat")


@pytest.mark.parametrize("broken", ["", "any length", "cut off"])
def test_no_connection_is_left_open(broken: str) -> None:
    """Not even where an exception keeps the client: so the collector does nothing here."""
    gc.collect()
    gc.disable()
    try:
        with serving(broken=broken) as server:
            run_checks(GENERATE, EndpointAddress(server.url, KEY, timeout=60), wait=5)
            left = [
                each
                for each in gc.get_objects()
                if isinstance(each, socket.socket)
                and each.fileno() >= 0
                and _peer(each) == server.server_address
            ]
    finally:
        gc.enable()

    assert left == []


def _peer(connection: socket.socket) -> object:
    try:
        return connection.getpeername()
    except OSError:  # a listener
        return None


def test_what_does_not_apply_is_skipped_with_the_reason() -> None:
    plain = Expectations(model="tiny", names=("tiny",))

    result = checked(plain)

    skipped = {each.name: each.reason for each in result.results if each.outcome == "skipped"}
    assert skipped == {
        "authentication": "the model has no access.apiKey",
        "served-names": "the model has one name",
        "adapters": "the model has no adapters",
        "tool-call": "the model has no features.tools",
        "reasoning": "the model has no features.reasoning",
        "context-limit": "the length is not known",
    }
    assert result.passed


def test_nobody_there_is_one_failure_and_no_success() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        result = run_checks(GENERATE, EndpointAddress(url, KEY), wait=0)

    assert failed(result) == ["reachable"]
    assert {each.outcome for each in result.results[1:]} == {"skipped"}
    assert not result.passed


def test_the_document_says_the_same() -> None:
    document = checked(GENERATE, broken="schema").as_json()

    assert (document["schemaVersion"], document["kind"], document["passed"]) == (1, "Smoke", False)
    assert {"name", "outcome", "reason", "seconds"} == set(document["checks"][0])
    assert json.loads(json.dumps(document)) == document


def test_expectations_survive_the_way_into_a_job() -> None:
    assert Expectations.from_json(GENERATE.to_json()) == GENERATE
    with pytest.raises(ValueError, match="not the expectations"):
        Expectations.from_json('{"unknown": 1}')


@pytest.mark.parametrize(("broken", "code"), [("", 0), ("cut off", 1)])
def test_the_program_of_the_job_prints_the_document_and_ends_with_the_verdict(broken: str, code: int) -> None:
    with serving(broken=broken) as server:
        run = subprocess.run(
            [sys.executable, "-m", "modelyard.endpoint_tests.smoke"],
            env={
                "PATH": os.environ["PATH"],
                "API_KEY": KEY,
                "EXPECTATIONS": GENERATE.to_json(),
                "TIMEOUT": "10",
                "URL": server.url,
                "WAIT": "5",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == code, run.stderr
    assert json.loads(run.stdout.splitlines()[-1])["passed"] == (code == 0)
