"""Who reaches a model server, and whom it reaches: nobody, since its weights are there."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from modelyard.k8s.labels import selector_labels
from modelyard.k8s.probes import PORT_NAME
from modelyard.k8s.router import pool_labels
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

# The label that Kubernetes itself puts on every namespace, and LeaderWorkerSet on every pod of a set.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_SET_NAME = "leaderworkerset.sigs.k8s.io/name"
# Where EKS Pod Identity hands out credentials (EKS user guide, pod-id-agent-setup).
_POD_IDENTITY = "169.254.170.23/32"


def server_policy(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of the server's NetworkPolicy: callers and Prometheus in, name resolution out; and whatever pods of one
    replica, or of the two halves of a disaggregated model, have to say to each other."""
    namespace = environment.namespace
    callers = callers_of(plan, environment)
    if plan.role != "both":  # the router calls, and hands out what the picker reads of the replicas
        callers = [*_monitoring(environment), _pods_of(namespace, router_labels(plan))]
    together = _together(plan, namespace)
    egress = [name_resolution(), *({"to": [peer]} for peer in together)]
    if plan.traced and environment.monitoring.otlp_endpoint:
        egress.append(_collector(environment.monitoring.otlp_endpoint))
    if plan.model.cache_strategy == "s3-stream":  # S3 has no fixed addresses
        egress += [
            {"ports": [{"port": 443, "protocol": "TCP"}]},
            {"to": [{"ipBlock": {"cidr": _POD_IDENTITY}}], "ports": [{"port": 80, "protocol": "TCP"}]},
        ]
    return {
        "podSelector": {"matchLabels": _all_pods(plan)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": callers, "ports": [{"port": PORT_NAME, "protocol": "TCP"}]},
            *({"from": [peer]} for peer in together),
        ],
        "egress": egress,
    }


def _all_pods(plan: ModelPlan) -> dict[str, str]:
    """The server's pods, workers included."""
    return {_SET_NAME: plan.name} if plan.serving.nodes > 1 else selector_labels(plan.name)


def _together(plan: ModelPlan, namespace: str) -> list[dict[str, Any]]:
    """Pods that exchange activations or KV blocks, on ports that they agree on at run time."""
    peers = []
    if plan.serving.nodes > 1:
        peers.append(_pods_of(namespace, {_SET_NAME: plan.name}))
    if plan.role != "both":
        peers.append(_pods_of(namespace, pool_labels(plan.model.name)))
    return peers


def router_policy(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of the NetworkPolicy of a disaggregated model's router."""
    replicas = _pods_of(environment.namespace, pool_labels(plan.model.name))
    return {
        "podSelector": {"matchLabels": router_labels(plan)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {
                "from": callers_of(plan, environment),
                "ports": [{"port": PORT_NAME, "protocol": "TCP"}, {"port": "metrics", "protocol": "TCP"}],
            }
        ],
        "egress": [
            name_resolution(),
            {"to": [replicas], "ports": [{"port": PORT_NAME, "protocol": "TCP"}]},
            # The API server, whose address a policy cannot name, tells of pods that come and go.
            {"ports": [{"port": 443, "protocol": "TCP"}]},
        ],
    }


def router_labels(plan: ModelPlan) -> dict[str, str]:
    """Labels that select the router's pods."""
    return {"app.kubernetes.io/name": "router", "app.kubernetes.io/instance": plan.model.name}


def callers_of(plan: ModelPlan, environment: Environment) -> list[dict[str, Any]]:
    """Pods that the model file lets in, and Prometheus."""
    clients = [_pods_of(client.namespace, client.pod_labels) for client in plan.model.access.allow_from]
    return [*(clients or [_pods_of(environment.namespace, {})]), *_monitoring(environment)]


def _monitoring(environment: Environment) -> list[dict[str, Any]]:
    monitoring = environment.monitoring
    return [_pods_of(monitoring.namespace, {})] if monitoring.enabled else []


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
