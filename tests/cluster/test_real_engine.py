"""The real vLLM as the process of a rendered pod, behind its real Service: asked by its Job, and drained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from modelyard.hardware import instance_types
from modelyard.live.verification.reports import CheckJob, job_outcome, read_report
from modelyard.planning import ModelPlan
from tests.cluster.addresses import here, pod_addresses
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.containers import Command, component
from tests.cluster.control_plane import ControlPlane
from tests.cluster.embedded_s3 import CREDENTIALS, NAME, Bucket, bucket
from tests.cluster.kubelets import Kubelets
from tests.cluster.nodes import general_node, node, register
from tests.cluster.programs import until
from tests.cluster.proxy import Proxy
from tests.cluster.rounds import rounds
from tests.cluster.trees import rendered
from tests.engine.installed import PYTHON, require
from tests.engine.live_server import arguments, streamed_events, variables, write_weights
from tests.unit.given import a_model, a_plan, an_environment

require()

_KINDS = (
    *("Namespace", "PriorityClass", "ServiceAccount", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "ConfigMap", "Service", "Deployment", "Job"),
)
_SERVICE = "http://tiny.models"
_LONG, _ANSWERS = 3500, 8  # tokens: seconds of work, so that it is still going on when the pod is to end


@dataclass(frozen=True)
class Served:
    """`model` in `cluster`, its only pod ready."""

    model: ModelPlan
    cluster: Cluster
    proxy: Proxy
    store: Bucket

    def connection(self) -> HTTPConnection:
        host, _, port = self.proxy.url(_SERVICE).removeprefix("http://").partition(":")
        return HTTPConnection(host, int(port), timeout=300)

    def endpoint(self) -> Object:
        """Conditions of the only endpoint of the Service; {} for none."""
        slices = self.cluster.api.list("discovery.k8s.io/v1", "EndpointSlice", "models")
        found = [one["conditions"] for each in slices for one in each.get("endpoints") or []]
        return found[0] if found else {}

    def at_work(self) -> float:
        """Requests that the engine's own metrics call running."""
        [pod] = [each for each in self.cluster.api.list("v1", "Pod", "models") if component(each) == "server"]
        with closing(HTTPConnection(here(pod["status"]["podIP"]), 8000, timeout=300)) as connection:
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        return sum(map(float, re.findall(r"^vllm:num_requests_running\{.*\} (\S+)$", page, re.MULTILINE)))


@pytest.fixture
def served(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Served]:
    environment = an_environment(delivery="flux", checks={"smoke": True})
    features = {"tools": True, "reasoning": True}
    size = {"maxModelLen": 4096, "maxNumSeqs": 8}
    given = a_model(name="tiny", model="hf://Qwen/Qwen3-8B", replicas=1, engine=size, features=features)
    plan = a_plan(given, environment=environment)
    [model] = plan.models
    write_weights(model, tmp_path / "models")

    def engine(pod: Object, address: str) -> Command:
        container = pod["spec"]["containers"][0]
        home, tmp = tmp_path / "home", tmp_path / "tmp"
        for each in (home, tmp):
            each.mkdir()
        flags = arguments(container, tmp_path / "models", 8000, address=here(address))
        return Command(PYTHON.with_name("vllm"), ["serve", *flags], variables(container, home, tmp))

    items = [
        item for item in rendered(plan) if item["kind"] in _KINDS and "fetch" not in item["metadata"]["name"]
    ]
    with ExitStack() as stack:
        store = stack.enter_context(bucket(tmp_path))
        account = {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://{store.address}", "REPORTS": NAME}
        others, kubelets_api = (stack.enter_context(plane.client()) for _ in range(2))
        proxy = stack.enter_context(closing(Proxy(others)))
        addresses = stack.enter_context(pod_addresses())
        kubelets = Kubelets(kubelets_api, tmp_path, addresses, account=account, url=proxy.url, engine=engine)
        stack.enter_context(closing(kubelets))
        playing = [stack.enter_context(rounds(each)) for each in (proxy.play, kubelets.play)]
        register(cluster.api, general_node("general", "us-east-2a"))
        kind = instance_types()[model.placement.cheapest.name]
        register(cluster.api, node("accelerated", kind, plan, model.placement.pool_name, "us-east-2a"))
        cluster.put(items)
        made = Served(model, cluster, proxy, store)

        def ready() -> bool:
            for each in playing:
                each.check()
            return bool(made.endpoint().get("ready"))

        until(ready, "the engine", seconds=600, lacking=lambda: _ends_of_logs(tmp_path))
        yield made


def _ends_of_logs(folder: Path) -> Iterator[str]:
    for path in folder.glob("tiny-*.log"):
        yield path.read_text(encoding="utf-8", errors="replace")[-2000:]


def test_its_job_asks_it_and_an_answer_under_way_outlives_its_endpoint(served: Served) -> None:
    """As `verify` reads the report; then the drain, as clients and the EndpointSlice see it."""
    jobs = served.cluster.api.list("batch/v1", "Job", "models")
    [job] = [CheckJob("tiny", item["metadata"]["name"], "models", 1) for item in jobs]
    until(served.store.contents, "the report of the Job", seconds=300)
    reports = [read_report(key, body) for key, body in served.store.contents().items()]
    assert job_outcome(job, reports).state == "answered", job_outcome(job, reports)

    assert served.endpoint() == {"ready": True, "serving": True, "terminating": False}
    with closing(served.connection()) as connection:
        events = _streamed(connection)
        next(events)
        server = {"apiVersion": "apps/v1", "kind": "Deployment"}
        served.cluster.api.scale({**server, "metadata": {"name": "tiny", "namespace": "models"}}, 0)
        until(lambda: served.endpoint().get("terminating"), "the end of the pod")

        assert served.endpoint() == {"ready": False, "serving": True, "terminating": True}
        assert served.at_work() > 0, "the answer was over before the pod was to end"
        until(lambda: not _answers(served), "no answer to others")
        *_, last = events

    assert last["usage"]["completion_tokens"] == _LONG * _ANSWERS
    until(lambda: not served.endpoint(), "an empty EndpointSlice", seconds=120)


def _streamed(connection: HTTPConnection) -> Iterator[dict[str, Any]]:
    """Events of one long completion; an error where it is cut off."""
    body = {"model": "tiny", "prompt": "One", "max_tokens": _LONG, "ignore_eos": True, "n": _ANSWERS}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    return streamed_events(connection.getresponse())


def _answers(served: Served) -> bool:
    with closing(served.connection()) as connection:
        try:
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
