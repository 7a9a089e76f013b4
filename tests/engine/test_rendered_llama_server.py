"""The real llama-server, started with the arguments of a rendered Deployment: generation and embeddings on
CPUs."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from modelyard.endpoint_tests.endpoint import EndpointAddress
from modelyard.endpoint_tests.promises import expectations
from modelyard.endpoint_tests.smoke import run_checks
from modelyard.objects.pods.probes import Drain
from modelyard.planning import ModelPlan
from tests.endpoint_examples import answers
from tests.engine.live_llama import LlamaServer, require, running, write_model
from tests.engine.live_server import probe_path, rendered
from tests.unit.given import a_model, a_plan, an_environment

require()

KEY = "key-of-the-clients"
ENVIRONMENT = an_environment(
    pools={"graviton": {"accelerator": "none", "limit": 64}}, secrets={"clients": "lab/clients"}
)


def planned(**changes: Any) -> ModelPlan:
    model = a_model(
        **{
            "name": "tiny",
            "model": {
                "uri": "hf://Qwen/Qwen3-0.6B-GGUF",
                "file": "Qwen3-0.6B-Q8_0.gguf",
                "architecture": "Qwen/Qwen3-0.6B",
            },
            "accelerator": "none:4",
            "engine": {"maxModelLen": 2048, "maxNumSeqs": 2},
            "access": {"apiKey": "clients"},
            **changes,
        }
    )
    [found] = a_plan(model, environment=ENVIRONMENT).models
    return found


def container(plan: ModelPlan) -> dict[str, Any]:
    found: dict[str, Any] = rendered(plan, ENVIRONMENT)["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    return found


def arguments(plan: ModelPlan) -> Sequence[str]:
    """The container's arguments without model, host and port, and the key that comes from a Secret."""
    args = container(plan)["args"]
    own = {"--model", "--host", "--port"}
    kept = [
        word
        for position, word in enumerate(args)
        if word not in own and (position == 0 or args[position - 1] not in own)
    ]
    assert len(kept) == len(args) - 2 * len(own)
    return [*kept, "--api-key", KEY]


@pytest.fixture(params=["generate", "embed"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ModelPlan, LlamaServer]]:
    task = request.param
    plan = planned(task=task)
    with running(write_model(tmp_path, task), arguments(plan), tmp_path / "log") as server:
        yield plan, server


def test_what_we_render_starts_and_keeps_its_promises(served: tuple[ModelPlan, LlamaServer]) -> None:
    plan, server = served
    promised = expectations(plan)
    if plan.model.task == "embed":  # the tiny model has fewer numbers than the one planned
        promised = type(promised)(**{**vars(promised), "dimension": None})

    result = run_checks(promised, EndpointAddress(f"http://127.0.0.1:{server.port}/v1", key=KEY))

    assert {r.name: r.reason for r in result.results if r.outcome == "failed"} == {}
    assert result.passed


def test_the_first_request_works_as_it_is_printed(served: tuple[ModelPlan, LlamaServer]) -> None:
    plan, server = served

    by_curl, by_python = answers(plan, ENVIRONMENT, f"http://127.0.0.1:{server.port}/v1", KEY)

    assert json.loads(by_curl)["model"] == plan.served_names[0]
    assert by_python.strip()


def test_probes_ask_what_is_open_and_scrapes_bring_the_key(served: tuple[ModelPlan, LlamaServer]) -> None:
    plan, server = served
    monitor = rendered(plan, ENVIRONMENT)["ServiceMonitor"]["spec"]["endpoints"][0]

    assert server.ask(probe_path(container(plan))).status == 200
    assert server.ask(monitor["path"]).status == 401
    assert monitor["authorization"]["credentials"] == {"name": "clients", "key": "value"}
    assert server.ask(monitor["path"], key=KEY).status == 200


def test_the_signal_comes_when_requests_had_their_time(tmp_path: Path) -> None:
    """The server cuts streams off, so the pause before the signal is the drain; then it must end within the
    grace."""
    plan = planned()
    pod = rendered(plan, ENVIRONMENT)["Deployment"]["spec"]["template"]["spec"]
    drain = Drain(requests=plan.model.drain, kind="wait")
    assert (
        pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] == drain.endpoints + plan.model.drain
    )
    with running(write_model(tmp_path, "slow"), arguments(plan), tmp_path / "log") as server:
        asked = {"prompt": "One", "n_predict": 4000, "stream": True, "ignore_eos": True}
        with closing(server.connect("/completion", asked, key=KEY)) as connection:
            connection.getresponse().readline()

            signalled = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(timeout=drain.teardown)

            assert time.monotonic() - signalled < pod["terminationGracePeriodSeconds"] - drain.pause
