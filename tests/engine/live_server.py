"""A real vLLM server with random weights on the CPU, started like the one in our pod.

Starting one takes minutes: `tests/engine/conftest.py` keeps one per plan running.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from modelyard.objects.platform.model_cache import MOUNT_PATH
from modelyard.objects.serving.compile_cache import COMPILE_PATH
from modelyard.objects.serving.model import model_server
from modelyard.objects.serving.weights import MARKER, weights_path
from modelyard.planning import ModelPlan
from modelyard.spec import Environment
from tests.engine.installed import PYTHON, ROOT
from tests.unit.given import a_model, a_plan, an_environment

ENVIRONMENT = an_environment(secrets={"clients": "lab/clients"})
KEY = "key-of-the-clients"
START_AT_MOST = 600  # seconds

# What a CPU needs besides the pod's own variables: gigabytes for the KV cache, which a GPU measures by
# itself.
CPU_VARIABLES = {"VLLM_CPU_KVCACHE_SPACE": "1"}


def planned(metric: str = "waiting") -> ModelPlan:
    """A plan whose settings fit on two CPU cores as they are: nothing of length or batch is replaced."""
    model = a_model(
        name="tiny",
        model="hf://Qwen/Qwen3-8B",
        replicas={"min": 1, "max": 3},
        engine={"maxModelLen": 4096, "maxNumSeqs": 8},
        adapters=[{"name": "legal", "uri": "hf://acme/legal-lora", "rank": 8}],
        features={"tools": True, "reasoning": True},
        scaling={"metric": metric},
        access={"apiKey": "clients"},
    )
    [found] = a_plan(model, environment=ENVIRONMENT).models
    return found


PLAN = planned()


def streamed_events(response: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer; an error when the stream is cut off."""
    for line in response:
        event = line.removeprefix(b"data: ").strip()
        if event == b"[DONE]":
            return
        if event:
            yield json.loads(event)
    raise AssertionError("the stream ended without [DONE]")


def rendered(plan: ModelPlan, environment: Environment = ENVIRONMENT) -> dict[str, dict[str, Any]]:
    """The objects of the model by kind."""
    return {item["kind"]: item for item in model_server(plan, environment)}


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

    plan: ModelPlan
    process: subprocess.Popen[bytes]
    port: int
    objects: dict[str, dict[str, Any]]
    log: Path
    before_ready: set[str]

    @property
    def container(self) -> dict[str, Any]:
        found: dict[str, Any] = self.objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        return found

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

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
            yield from streamed_events(response)

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


def write_weights(plan: ModelPlan, models: Path) -> None:
    """The tiny model, where the fetch job would have put the large one."""
    weights = plan.model.model
    folder = models / Path(weights_path(weights.uri, weights.revision)).relative_to(MOUNT_PATH)
    folder.mkdir(parents=True)
    subprocess.run([PYTHON, ROOT / "tests" / "engine" / "tiny_model.py", folder], check=True)
    (folder / MARKER).write_text(weights.revision)
    for adapter in plan.model.adapters:
        place = models / Path(weights_path(adapter.uri, adapter.revision)).relative_to(MOUNT_PATH)
        subprocess.run([PYTHON, ROOT / "tests" / "engine" / "tiny_lora.py", place, folder], check=True)


def arguments(container: dict[str, Any], models: Path, port: int, *, address: str = "127.0.0.1") -> list[str]:
    """The container's arguments with three changes: weights and adapters elsewhere, one address of this
    machine only, and a free port of it.

    All else works on a CPU as it is: dtype, memory share and load strategy are taken, and mean less.
    """
    changed = {"--host=0.0.0.0": f"--host={address}", "--port=8000": f"--port={port}"}
    path, *flags = container["args"]
    assert set(changed) <= set(flags)
    moved = models / Path(path).relative_to(MOUNT_PATH)
    return [
        str(moved),
        *(changed.get(flag, flag).replace(f"={MOUNT_PATH}/", f"={models}/") for flag in flags),
    ]


def variables(container: dict[str, Any], home: Path, tmp: Path) -> dict[str, str]:
    """The container's variables and no others; its writable volumes are folders of the test."""
    values = {"PATH": os.environ["PATH"], **CPU_VARIABLES}
    for variable in container["env"]:
        value = variable.get("value", KEY)  # the only one without is the API key, from a Secret
        for volume, place in (("/home/vllm", home), (COMPILE_PATH, home / "compile"), ("/tmp", tmp)):
            if value.startswith(volume):
                value = str(place) + value.removeprefix(volume)
        values[variable["name"]] = value
    return values


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(plan: ModelPlan, folder: Path) -> Iterator[Server]:
    """A server of `plan` that is ready; killed at the end, if it still runs. `folder` is its own, and
    empty."""
    models, home, tmp, log = (folder / name for name in ("models", "home", "tmp", "log"))
    for each in (home, tmp):
        each.mkdir()
    write_weights(plan, models)
    objects = rendered(plan)
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
    started = Server(plan, process, port, objects, log, set())
    try:
        started.wait_until_ready()
        yield started
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
