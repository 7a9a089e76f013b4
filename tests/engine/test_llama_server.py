"""A real llama-server: the behaviour that probes, scrapes, clients and a shutdown rely on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations
from modelyard.endpoint_tests.smoke import run_checks
from tests.engine.installed import ROOT
from tests.engine.live_llama import LlamaServer, require, running, write_model

require()

KEY = "key-of-the-clients"
DATA = ROOT / "constructs" / "modelyard" / "engines" / "llama_server"
METRICS = ROOT / "tests" / "fixtures" / "llama_server_metrics.txt"
ARGUMENTS = (
    "--metrics",
    "--api-key",
    KEY,
    "--ctx-size",
    "2048",
    "--parallel",
    "2",
    "--no-ui",
    "--alias",
    "tiny",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    folder = tmp_path_factory.mktemp("llama")
    with running(write_model(folder, "generate"), ARGUMENTS, folder / "log") as started:
        yield started


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("slow"), "slow")


def test_health_says_503_while_the_model_loads(slow_model: Path, tmp_path: Path) -> None:
    """So a startup probe on /health waits for the model, as it does with vLLM's refused connections."""
    with running(slow_model, (), tmp_path / "log") as server:
        assert server.before_ready == ["ConnectionRefusedError", "503"]
        assert server.ask("/health").data == {"status": "ok"}


def test_health_alone_is_open_and_metrics_need_the_key(server: LlamaServer) -> None:
    """A ServiceMonitor of a server with a key has to send it."""
    without = {path: server.ask(path).status for path in ("/health", "/v1/health", "/metrics", "/v1/models")}

    assert without == {"/health": 200, "/v1/health": 200, "/metrics": 401, "/v1/models": 401}
    assert server.ask("/metrics", key="another").status == 401
    assert server.ask("/metrics", key=KEY).status == 200


def test_metrics_are_off_unless_asked_for(tmp_path: Path) -> None:
    with running(write_model(tmp_path, "generate"), (), tmp_path / "log") as server:
        assert server.ask("/metrics").status == 501


def test_metrics_have_the_recorded_names(server: LlamaServer) -> None:
    """The recorded page is what queries are held against."""
    server.ask("/v1/completions", {"model": "tiny", "prompt": "One", "max_tokens": 4}, key=KEY)

    names = set(re.findall(r"^(llamacpp:\w+)", server.ask("/metrics", key=KEY).text, re.MULTILINE))

    recorded = set(re.findall(r"^(llamacpp:\w+)", METRICS.read_text(encoding="utf-8"), re.MULTILINE))
    assert names == recorded
    assert {"llamacpp:requests_deferred", "llamacpp:requests_processing"} <= names


def test_the_context_is_divided_among_the_slots(server: LlamaServer) -> None:
    """2048 for two: a request has half of --ctx-size."""
    [model] = server.ask("/v1/models", key=KEY).data["data"]

    assert model["id"] == "tiny"
    assert model["meta"]["n_ctx"] == 1024


def test_smoke_finds_nothing_wrong(server: LlamaServer) -> None:
    # No tools: its grammar begins at the mark of a call, which random weights do not write.
    expected = Expectations(
        model="tiny", names=("tiny",), reads_names=False, forces_functions=False, needs_key=True
    )

    result = run_checks(expected, EndpointAddress(f"http://127.0.0.1:{server.port}/v1", KEY))

    assert {r.name: r.reason for r in result.results if r.outcome == "failed"} == {}
    assert result.passed


def test_a_prompt_beyond_the_slot_is_refused(server: LlamaServer) -> None:
    answer = server.ask("/v1/completions", {"prompt": "one " * 2000, "max_tokens": 1}, key=KEY)

    assert answer.status == 400
    assert answer.data["error"]["type"] == "exceed_context_size_error"


def test_smoke_finds_nothing_wrong_with_embeddings(tmp_path: Path) -> None:
    arguments = ("--embedding", "--pooling", "mean", "--no-ui", "--alias", "tiny")
    expected = Expectations(model="tiny", names=("tiny",), reads_names=False, task="embed", dimension=64)
    with running(write_model(tmp_path, "embed"), arguments, tmp_path / "log") as server:
        result = run_checks(expected, EndpointAddress(f"http://127.0.0.1:{server.port}/v1"))

    assert {r.name: r.reason for r in result.results if r.outcome == "failed"} == {}
    assert result.passed


def test_the_flag_table_is_what_the_program_says() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / ".ci" / "llama_flags.py"], check=True, capture_output=True, text=True
    )

    table = json.loads((DATA / "releases" / "b11434.json").read_text("utf-8"))
    told = json.loads(run.stdout)
    assert told == {key: table[key] for key in told}
    spellings = {*told["flags"], *(a for row in told["flags"].values() for a in row.get("aliases", ()))}
    assert set(table["owned"]) <= spellings


def test_an_idle_server_stops_at_once(tmp_path: Path) -> None:
    with running(write_model(tmp_path, "generate"), (), tmp_path / "log") as server:
        # It is healthy a moment before it handles signals; whoever has answered does.
        assert server.ask("/completion", {"prompt": "One", "n_predict": 1}).status == 200

        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(timeout=60) == 0


@pytest.mark.parametrize("interval", [1, 3])
def test_a_stop_does_not_drain(slow_model: Path, tmp_path: Path, interval: int) -> None:
    """No token comes after the signal. The stream is cut off without a finish reason when its next keep-alive
    is due, or at once where the writer was not waiting at the signal; the process ends with it. So what has
    to finish must do so before the signal."""
    arguments = ("--sse-ping-interval", str(interval))
    with running(slow_model, arguments, tmp_path / "log") as server:
        body = {
            "messages": [{"role": "user", "content": "Count."}],
            "max_tokens": 3000,
            "stream": True,
            "ignore_eos": True,
        }
        connection = server.connect("/v1/chat/completions", body)
        lines = iter(connection.getresponse())
        for _ in range(20):
            next(lines)
        server.process.send_signal(signal.SIGTERM)
        signalled = time.monotonic()
        rest = [event for line in lines if (event := _event(line))]
        code = server.process.wait(timeout=120)
        took = time.monotonic() - signalled
        connection.close()

    assert code == 0
    assert [choice["finish_reason"] for event in rest for choice in event["choices"]] == [None] * len(rest)
    assert len(rest) < 20  # what was on its way
    assert took < interval + 60  # 3000 tokens take longer on any machine that is this slow


def _event(line: bytes) -> dict[str, Any] | None:
    text = line.strip()
    if not text.startswith(b"data: ") or text == b"data: [DONE]":
        return None
    found: dict[str, Any] = json.loads(text.removeprefix(b"data: "))
    return found
