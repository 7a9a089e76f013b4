"""Pods of `make cluster` without a cluster: a process takes the rendered arguments, and probes measure it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from modelyard.endpoint_tests.endpoint import EndpointAddress
from modelyard.endpoint_tests.promises import expectations
from modelyard.endpoint_tests.smoke import run_checks
from modelyard.objects.serving.model import model_server
from tests.cluster.addresses import here, pod_addresses, port_here
from tests.cluster.api import Object
from tests.cluster.containers import played_engine
from tests.cluster.probes import answers
from tests.cluster.programs import Running, running, until
from tests.cluster.standins import stand_ins
from tests.unit.given import a_model, a_plan, an_environment

ENVIRONMENT = an_environment()
[PLAN] = a_plan(a_model(name="chat", features={"tools": True}), environment=ENVIRONMENT).models


def rendered_pod() -> Object:
    [server] = [item for item in model_server(PLAN, ENVIRONMENT) if item["kind"] == "Deployment"]
    pod: Object = server["spec"]["template"]
    return pod


@contextmanager
def engine(folder: Path, address: str) -> Iterator[Running]:
    command = played_engine(rendered_pod(), address)
    with running(
        "engine", command.arguments, folder, variables=command.variables, executable=command.executable
    ) as started:
        yield started


def test_an_address_here_is_the_cluster_s_with_127_in_front() -> None:
    assert here("172.20.3.94") == "127.20.3.94"
    assert (port_here(80), port_here(8000)) == (8080, 8000)


def test_two_clusters_have_no_address_in_common() -> None:
    with pod_addresses() as one, pod_addresses() as other:
        assert next(one).split(".")[1] != next(other).split(".")[1]


def test_a_played_engine_keeps_what_the_plan_promises(tmp_path: Path) -> None:
    with pod_addresses() as addresses:
        address = next(addresses)
        with engine(tmp_path, address):
            target = EndpointAddress(f"http://{here(address)}:8000/v1", None, timeout=60)
            result = run_checks(expectations(PLAN), target, wait=60)

    assert {each.name: each.reason for each in result.results if each.outcome == "failed"} == {}


@pytest.mark.parametrize(
    ("changes", "passes"),
    [
        ({}, True),
        ({"port": "metrics"}, False),
        ({"port": 8001}, False),
        ({"path": "/healthz"}, False),
    ],
    ids=["rendered", "no such port", "another port", "another path"],
)
def test_a_probe_is_asked_where_it_says(tmp_path: Path, changes: dict[str, Any], passes: bool) -> None:
    container = rendered_pod()["spec"]["containers"][0]
    probe = container["readinessProbe"]
    with pod_addresses() as addresses:
        address = next(addresses)
        with engine(tmp_path, address) as started:

            def up() -> bool:
                started.check()
                return answers(address, container, probe)

            until(up, "the engine", seconds=60)
            mistaken = {**probe, "httpGet": {**probe["httpGet"], **changes}}

            assert answers(address, container, mistaken) is passes


def test_an_unknown_path_and_an_unknown_model_are_not_found(tmp_path: Path) -> None:
    container = rendered_pod()["spec"]["containers"][0]
    with pod_addresses() as addresses:
        address = next(addresses)
        with engine(tmp_path, address):
            until(lambda: answers(address, container, container["readinessProbe"]), "the engine", seconds=60)
            asked = {"model": "another", "prompt": "x", "max_tokens": 1}
            for path, body in (("/other", None), ("/v1/completions", json.dumps(asked).encode())):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(f"http://{here(address)}:8000{path}", body)
                assert refused.value.code == 404
                refused.value.close()


def test_a_kind_without_a_definition_gets_one_that_takes_everything() -> None:
    item = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"namespace": "models"}}
    store = {"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "metadata": {}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "models"}}

    made = stand_ins([item, store, job], {("batch/v1", "Job")})

    assert [(each["metadata"]["name"], each["spec"]["scope"]) for each in made] == [
        ("clustersecretstores.external-secrets.io", "Cluster"),
        ("scaledobjects.keda.sh", "Namespaced"),
    ]
