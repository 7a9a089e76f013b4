"""Every Service of every environment leads to its pods, port by port, says the controller of endpoints."""

from __future__ import annotations

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import general_node, register
from tests.cluster.player import Player
from tests.cluster.programs import until
from tests.cluster.trees import planned, rendered
from tests.cluster.workloads import settled
from tests.contract.conftest import NAMES
from tests.contract.mutations import MODEL, SERVER, Mutation

_OF = "kubernetes.io/service-name"


def services(items: list[Object]) -> dict[str, set[str]]:
    """Name to the names of its ports, of Services whose pods are here: not of groups."""
    groups = {item["metadata"]["name"] for item in items if item["kind"] == "LeaderWorkerSet"}
    return {
        item["metadata"]["name"]: {port.get("name", "") for port in item["spec"]["ports"]}
        for item in items
        if item["kind"] == "Service"
        and item["spec"].get("selector")
        and item["metadata"]["labels"].get("app.kubernetes.io/instance") not in groups
    }


def endpoints(cluster: Cluster) -> dict[str, set[str]]:
    """Name of a Service to the ports on which a ready pod answers."""
    found: dict[str, set[str]] = {}
    for each in cluster.api.list("discovery.k8s.io/v1", "EndpointSlice"):
        ready = [one for one in each.get("endpoints") or [] if one["conditions"].get("ready")]
        ports = {port.get("name") or "" for port in each.get("ports") or []}
        if ready:
            found.setdefault(each["metadata"]["labels"].get(_OF, ""), set()).update(ports)
    return found


def running(cluster: Cluster, items: list[Object]) -> None:
    """Store `items`, each workload with a replica, and run their pods on some node: there is no endpoint
    without one."""
    register(cluster.api, general_node("host", "us-east-2a"))
    cluster.put(items)
    for item in items:
        if item["kind"] == "Deployment":
            cluster.api.scale(item, 1)
    assert settled(cluster.api) == []
    for pod in cluster.api.list("v1", "Pod"):
        if not pod["spec"].get("nodeName"):
            cluster.api.bind(pod, "host")
    Player(cluster.api).play()


@pytest.mark.parametrize("name", NAMES)
def test_every_service_has_endpoints_for_its_ports(cluster: Cluster, name: str) -> None:
    kept = ("Namespace", "PriorityClass", "ServiceAccount", "ResourceQuota", "Service", "Deployment")
    items = rendered(planned(name))
    running(cluster, [item for item in items if item["kind"] in kept])
    wanted = services(items)

    def missing() -> dict[str, set[str]]:
        found = endpoints(cluster)
        return {
            each: ports - found.get(each, set())
            for each, ports in wanted.items()
            if ports - found.get(each, set())
        }

    until(lambda: not missing(), "endpoints", seconds=300, lacking=lambda: missing().items())


def test_a_port_that_no_container_has_is_no_endpoint(cluster: Cluster) -> None:
    kept = ("Namespace", "PriorityClass", "ServiceAccount", "Service", "Deployment")
    items = [item for item in rendered(planned("prod")) if item["kind"] in kept]
    renamed = Mutation("", "Deployment", MODEL, (*SERVER, "ports", "http", "name"), "api").applied(items)
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    for probe in probes:
        renamed = Mutation("", "Deployment", MODEL, (*SERVER, probe)).applied(renamed)
    running(cluster, renamed)
    others = {each for each in services(items) if each != MODEL}

    until(lambda: others <= set(endpoints(cluster)), "endpoints of the others", seconds=300)

    assert not endpoints(cluster).get(MODEL)
