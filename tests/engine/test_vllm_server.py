"""A real vLLM server, started like the one in our pod: the behaviour that probes, clients, scrapes and the
drain rely on."""

from __future__ import annotations

import json
import re
import signal
import time
from typing import Any

import pytest

from modelyard.objects.pods.probes import Drain
from modelyard.observability import model_groups
from modelyard.observability.dashboards import dashboards
from tests.engine.installed import require
from tests.engine.live_server import (
    ENVIRONMENT,
    PLAN,
    START_AT_MOST,
    Server,
    planned,
    probe_path,
    rendered,
    running,
)
from tests.unit.given import a_plan

require()

NAMES = [PLAN.name, "Qwen/Qwen3-8B"]
# Seconds of work for the CPU, so that it is still running when the signal comes; far less than the drain.
LONG = 3500


def test_the_port_refuses_until_the_model_is_loaded(server: Server) -> None:
    """No answer of another kind comes first, so one path serves all three probes."""
    assert server.before_ready == {"ConnectionRefusedError"}
    assert server.knock() == "200"


def test_models_are_listed_under_our_names_with_the_planned_length(server: Server) -> None:
    models = server.ask("/v1/models").data["data"]

    assert [model["id"] for model in models] == [*NAMES, "legal"]
    assert {model["max_model_len"] for model in models[:-1]} == {PLAN.serving.max_model_len}


def test_an_adapter_answers_otherwise_than_its_base_model(server: Server) -> None:
    def answer(name: str) -> str:
        asked = {"model": name, "prompt": "One", "max_tokens": 16, "temperature": 0, "ignore_eos": True}
        return str(server.ask("/v1/completions", asked).data["choices"][0]["text"])

    assert answer("legal") == answer("legal")
    assert answer("legal") != answer(PLAN.name)


def test_clients_need_the_key_probes_and_scrapes_do_not(server: Server) -> None:
    monitor = server.objects["ServiceMonitor"]["spec"]["endpoints"][0]

    assert server.ask("/v1/models", key=None).status == 401
    assert server.ask("/v1/models", key="another").status == 401
    assert server.ask(probe_path(server.container), key=None).status == 200
    assert server.ask(monitor["path"], key=None).status == 200


@pytest.mark.parametrize("name", NAMES)
def test_a_completion_is_answered_under_each_name(server: Server, name: str) -> None:
    answer = server.ask(
        "/v1/completions", {"model": name, "prompt": "One", "max_tokens": 8, "ignore_eos": True}
    )

    assert answer.status == 200, answer.text
    assert answer.data["model"] == NAMES[0]  # vLLM answers with the first name, whichever was asked for
    assert answer.data["usage"]["completion_tokens"] == 8


def test_a_streamed_chat_completion_arrives_in_pieces_and_whole(server: Server) -> None:
    *pieces, last = server.stream(chat(max_tokens=32))

    assert len(pieces) > 10
    assert reasons(pieces) == ["length"]
    assert last["usage"]["completion_tokens"] == 32


def test_metrics_have_what_the_autoscaler_asks_for(server: Server) -> None:
    monitor = server.objects["ServiceMonitor"]["spec"]["endpoints"][0]
    queries = [
        rendered(planned(metric))["ScaledObject"]["spec"]["triggers"][0]["metadata"]["query"]
        for metric in ("waiting", "kv-cache")
    ]
    asked = {name for query in queries for name in re.findall(r"vllm:\w+", query)}

    answer = server.ask(monitor["path"], key=None)
    found = dict(re.findall(r"^(vllm:\w+)\{.*\} (\S+)$", answer.text, re.MULTILINE))

    assert answer.kind.startswith("text/plain")
    assert asked == {"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"}
    assert asked <= set(found)
    assert float(found["vllm:num_requests_waiting"]) == 0
    assert 0 <= float(found["vllm:kv_cache_usage_perc"]) <= 1  # the query makes percent of it


def test_every_metric_of_rules_dashboards_and_scalers_is_on_the_page(server: Server) -> None:
    """Not only in the stored page: what this server was never asked for has no series before it happens."""
    whole = a_plan(PLAN.model, environment=ENVIRONMENT)
    rules = [rule.expr for group in model_groups(PLAN, "models") for rule in group.rules]
    boards = [json.loads(board) for name, board in dashboards(whole).items() if name.startswith("model-")]
    queries = [
        *rules,
        *(target["expr"] for b in boards for panel in b["panels"] for target in panel.get("targets", [])),
    ]
    asked = {name for query in queries for name in re.findall(r"vllm:\w+", query)}
    server.ask("/v1/chat/completions", chat(max_tokens=4))

    page = server.ask("/metrics", key=None).text
    found = set(re.findall(r"^(vllm:\w+)\{", page, re.MULTILINE))

    assert len(asked) >= 10
    assert asked - found == set()


def test_probes_and_scrapes_stay_out_of_the_log(server: Server) -> None:
    for path in ("/v1/models", "/health", "/metrics"):
        assert server.ask(path).status == 200

    log = server.log.read_text()

    assert '"GET /v1/models HTTP/1.1" 200' in log
    assert "GET /health" not in log
    assert "GET /metrics" not in log


def test_a_running_stream_ends_whole_and_the_process_within_the_grace(
    server_to_stop: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It stops the server, as the kubelet does after the preStop pause."""
    if stops_in_the_middle(server_to_stop):
        return
    # On a busy machine the engine may be through before this process reads the first pieces: once more, from
    # the start.
    for _ in range(2):
        with running(PLAN, tmp_path_factory.mktemp("vllm")) as server:  # short: sockets lie below it
            if stops_in_the_middle(server):
                return
    pytest.fail("every stream was over before the signal")


def stops_in_the_middle(server: Server) -> bool:
    """Stop it while it answers: the answer is whole, and the process ends in time. Whether it had still been
    answering."""
    drain = Drain(requests=PLAN.model.drain)
    stream = server.stream(chat(max_tokens=LONG))
    for _ in range(20):  # the first piece may come before the engine has begun
        next(stream)

    server.process.send_signal(signal.SIGTERM)
    signalled = time.monotonic()
    *pieces, last = stream
    code = server.process.wait(timeout=START_AT_MOST)
    took = time.monotonic() - signalled

    assert reasons(pieces) == ["length"]
    assert last["usage"]["completion_tokens"] == LONG
    assert code == 0
    assert took < drain.grace - drain.endpoints
    return "draining in-flight requests count=1" in server.log.read_text()


def chat(max_tokens: int) -> dict[str, Any]:
    question = [{"role": "user", "content": "Count."}]
    return {"model": PLAN.name, "messages": question, "max_tokens": max_tokens, "ignore_eos": True}


def reasons(pieces: list[dict[str, Any]]) -> list[str]:
    """Why the answer ended, as the stream says it; nothing in a stream that was cut off."""
    given = (choice["finish_reason"] for piece in pieces for choice in piece.get("choices", ()))
    return [reason for reason in given if reason]
