"""Who reaches a model server, and whom it reaches: nobody, since its weights are there."""

from __future__ import annotations

from typing import Any

from modelyard.k8s.labels import selector_labels
from modelyard.k8s.probes import PORT_NAME
from modelyard.spec import Environment, Model

ENDPOINT_CHECK = "endpoint-check"
"""Component label of the jobs that ask a model."""

# The label that Kubernetes itself puts on every namespace.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def server_ingress(model: Model, environment: Environment) -> dict[str, Any]:
    """`spec` of the server's NetworkPolicy: callers and Prometheus in, name resolution out."""
    callers: list[dict[str, Any]] = [
        _pods_of(client.namespace, client.pod_labels) for client in model.access.allow_from
    ] or [_pods_of(environment.namespace, {})]
    if environment.checks.enabled and model.access.allow_from:  # the whole namespace may ask otherwise
        callers.append(_pods_of(environment.namespace, check_labels(model.name)))
    if environment.monitoring.enabled:
        callers.append(_pods_of(environment.monitoring.namespace, {}))
    return {
        "podSelector": {"matchLabels": selector_labels(model.name)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": callers, "ports": [{"port": PORT_NAME, "protocol": "TCP"}]}],
        "egress": [name_resolution()],
    }


def check_labels(model: str) -> dict[str, str]:
    """Labels that select the jobs which ask `model`."""
    return {"app.kubernetes.io/component": ENDPOINT_CHECK, "app.kubernetes.io/instance": model}


def check_egress(port: int) -> list[dict[str, Any]]:
    """Egress of those jobs: names, the package index, which has no fixed address, and the servers beside them."""
    servers = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "model-server"}}}
    return [
        name_resolution(),
        {"ports": [{"port": 443, "protocol": "TCP"}]},
        {"to": [servers], "ports": [{"port": port, "protocol": "TCP"}]},
    ]


def name_resolution() -> dict[str, Any]:
    """An egress rule to the cluster's DNS."""
    peer = _pods_of("kube-system", {"k8s-app": "kube-dns"})
    return {"to": [peer], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def _pods_of(namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    peer: dict[str, Any] = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: namespace}}}
    if labels:
        peer["podSelector"] = {"matchLabels": labels}
    return peer
