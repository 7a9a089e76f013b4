"""Who reaches a model server, and whom it reaches: nobody, since its weights are there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from modelyard.k8s.labels import selector_labels
from modelyard.k8s.probes import PORT_NAME
from modelyard.spec import Environment, Model

# The label that Kubernetes itself puts on every namespace.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def server_ingress(model: Model, environment: Environment, *, traced: bool = False) -> dict[str, Any]:
    """`spec` of the server's NetworkPolicy: callers and Prometheus in, name resolution out."""
    callers: list[dict[str, Any]] = [
        _pods_of(client.namespace, client.pod_labels) for client in model.access.allow_from
    ] or [_pods_of(environment.namespace, {})]
    if environment.monitoring.enabled:
        callers.append(_pods_of(environment.monitoring.namespace, {}))
    egress = [name_resolution()]
    if traced and environment.monitoring.otlp_endpoint:
        egress.append(_collector(environment.monitoring.otlp_endpoint))
    return {
        "podSelector": {"matchLabels": selector_labels(model.name)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": callers, "ports": [{"port": PORT_NAME, "protocol": "TCP"}]}],
        "egress": egress,
    }


def _collector(endpoint: str) -> dict[str, Any]:
    """An egress rule to `http://SERVICE.NAMESPACE:PORT`; a policy sees the pod's port, which is the Service's for OTLP."""
    address = urlsplit(endpoint)
    namespace = (address.hostname or "").split(".")[1]
    return {"to": [_pods_of(namespace, {})], "ports": [{"port": address.port, "protocol": "TCP"}]}


def name_resolution() -> dict[str, Any]:
    """An egress rule to the cluster's DNS."""
    peer = _pods_of("kube-system", {"k8s-app": "kube-dns"})
    return {"to": [peer], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def _pods_of(namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    peer: dict[str, Any] = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: namespace}}}
    if labels:
        peer["podSelector"] = {"matchLabels": labels}
    return peer
