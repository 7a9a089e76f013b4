"""A real vLLM server, started as our pod starts it: what probes, clients, scrapes and the drain rely on.

One server for the module, with a model of random weights on the CPU; starting it takes minutes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import cdk8s
import pytest

from modelyard.k8s import ModelServer
from modelyard.k8s.probes import Drain
from modelyard.k8s.weights import MARKER, MOUNT_PATH, weights_path
from modelyard.planning import ModelPlan
from tests.engine.installed import PYTHON, ROOT, require
from tests.unit.given import a_model, a_plan, an_environment

require()

ENVIRONMENT = an_environment(secrets={"clients": "lab/clients"})
KEY = "key-of-the-clients"
START_AT_MOST = 600  # seconds
# Seconds of work for the CPU, so that it is still running when the signal comes; far less than the drain.
LONG = 3500

# What a CPU needs besides the pod's own variables: gigabytes for the KV cache, which a GPU measures by itself.
CPU_VARIABLES = {"VLLM_CPU_KVCACHE_SPACE": "1"}


def planned(metric: str = "waiting") -> ModelPlan:
    """A plan whose settings fit on two CPU cores as they are: nothing of length or batch is replaced."""
    model = a_model(
        name="tiny",
        model="hf://Qwen/Qwen3-8B",
        replicas={"min": 1, "max": 3},
        engine={"maxModelLen": 4096, "maxNumSeqs": 8},
        features={"tools": True, "reasoning": True},
        scaling={"metric": metric},
        access={"apiKey": "clients"},
    )
    [found] = a_plan(model, environment=ENVIRONMENT).models
    return found


PLAN = planned()
NAMES = [PLAN.name, "Qwen/Qwen3-8B"]


def rendered(plan: ModelPlan) -> dict[str, dict[str, Any]]:
    """The objects of the model by kind."""
    chart = cdk8s.Testing.chart()
    ModelServer(chart, "Model", plan=plan, environment=ENVIRONMENT)
    return {item["kind"]: item for item in cdk8s.Testing.synth(chart)}


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str
    text: str

    @property
    def data(self) -> Any:
        return json.loads(self.text)


@dataclass
class Server:
    """The process, and the objects that it was started from."""

    process: subprocess.Popen[bytes]
    port: int
    objects: dict[str, dict[str, Any]]
    log: Path
    before_ready: set[str]

    @property
    def container(self) -> dict[str, Any]:
        found: dict[str, Any] = self.objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        return found

    def ask(self, path: str, body: dict[str, Any] | None = None, key: str | None = KEY) -> Answer:
        with closing(self._connection()) as connection:
            self._request(connection, path, body, key)
            response = connection.getresponse()
            kind = response.getheader("Content-Type") or ""
            return Answer(response.status, kind, response.read().decode())

    def stream(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events of a streamed chat completion; an error when the stream is cut off."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with closing(self._connection()) as connection:
            self._request(connection, "/v1/chat/completions", body, KEY)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            for line in response:
                event = line.removeprefix(b"data: ").strip()
                if event == b"[DONE]":
                    return
                if event:
                    yield json.loads(event)
        raise AssertionError("the stream ended without [DONE]")

    def knock(self) -> str:
        """The status of the probes' path, or why there is none."""
        try:
            return str(self.ask(probe_path(self.container), key=None).status)
        except OSError as error:
            return type(error).__name__

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_AT_MOST
        while time.monotonic() < deadline and self.process.poll() is None:
            if (answer := self.knock()) == "200":
                return
            self.before_ready.add(answer)
            time.sleep(0.5)
        pytest.fail(f"not ready, exit code {self.process.poll()}:\n{self.log.read_text()[-4000:]}")

    def _connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=300)

    def _request(
        self, connection: HTTPConnection, path: str, body: dict[str, Any] | None, key: str | None
    ) -> None:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)


def probe_path(container: dict[str, Any]) -> str:
    [path] = {container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    return str(path)


def write_weights(models: Path) -> None:
    """The tiny model, where the fetch job would have put the large one."""
    folder = models / Path(weights_path(PLAN.model.model.uri, "main")).relative_to(MOUNT_PATH)
    folder.mkdir(parents=True)
    subprocess.run([PYTHON, ROOT / "tests" / "engine" / "tiny_model.py", folder], check=True)
    (folder / MARKER).write_text("main")


def arguments(container: dict[str, Any], models: Path, port: int) -> list[str]:
    """The container's arguments with three changes: weights elsewhere, this machine only, and a free port.

    All else works on a CPU as it is: dtype, memory share and load strategy are taken, and mean less.
    """
    changed = {"--host=0.0.0.0": "--host=127.0.0.1", "--port=8000": f"--port={port}"}
    path, *flags = container["args"]
    assert set(changed) <= set(flags)
    moved = models / Path(path).relative_to(MOUNT_PATH)
    return [str(moved), *(changed.get(flag, flag) for flag in flags)]


def variables(container: dict[str, Any], home: Path, tmp: Path) -> dict[str, str]:
    """The container's variables and no others; its two writable volumes are folders of the test."""
    values = {"PATH": os.environ["PATH"], **CPU_VARIABLES}
    for variable in container["env"]:
        value = variable.get("value", KEY)  # the only one without is the API key, from a Secret
        values[variable["name"]] = value.replace("/home/vllm", str(home)).replace("/tmp", str(tmp), 1)
    return values


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("vllm")
    models, home, tmp, log = (folder / name for name in ("models", "home", "tmp", "log"))
    for each in (home, tmp):
        each.mkdir()
    write_weights(models)
    objects = rendered(PLAN)
    container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [PYTHON.with_name("vllm"), "serve", *arguments(container, models, port)],
            cwd=tmp,
            env=variables(container, home, tmp),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = Server(process, port, objects, log, set())
    try:
        started.wait_until_ready()
        yield started
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_port_refuses_until_the_model_is_loaded(server: Server) -> None:
    """No answer of another kind comes first, so one path serves all three probes."""
    assert server.before_ready == {"ConnectionRefusedError"}
    assert server.knock() == "200"


def test_models_are_listed_under_our_names_with_the_planned_length(server: Server) -> None:
    models = server.ask("/v1/models").data["data"]

    assert [model["id"] for model in models] == NAMES
    assert {model["max_model_len"] for model in models} == {PLAN.serving.max_model_len}


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


def test_probes_and_scrapes_stay_out_of_the_log(server: Server) -> None:
    for path in ("/v1/models", "/health", "/metrics"):
        assert server.ask(path).status == 200

    log = server.log.read_text()

    assert '"GET /v1/models HTTP/1.1" 200' in log
    assert "GET /health" not in log
    assert "GET /metrics" not in log


def test_a_running_stream_ends_whole_and_the_process_within_the_grace(server: Server) -> None:
    """Last in the module: it stops the server, as the kubelet does after the preStop pause."""
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
    assert "draining in-flight requests count=1" in server.log.read_text(), "it was over before the signal"
    assert code == 0
    assert took < drain.grace - drain.endpoints


def chat(max_tokens: int) -> dict[str, Any]:
    question = [{"role": "user", "content": "Count."}]
    return {"model": PLAN.name, "messages": question, "max_tokens": max_tokens, "ignore_eos": True}


def reasons(pieces: list[dict[str, Any]]) -> list[str]:
    """Why the answer ended, as the stream says it; nothing in a stream that was cut off."""
    given = (choice["finish_reason"] for piece in pieces for choice in piece.get("choices", ()))
    return [reason for reason in given if reason]
