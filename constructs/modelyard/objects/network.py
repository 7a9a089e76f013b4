"""Ingress and egress of a model server. It needs no egress to the internet: its weights are in the cache."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from modelyard.object_rules.pods import GROUP
from modelyard.objects.labels import pool_labels, server_labels
from modelyard.objects.pods.ports import PICKER_METRICS_PORT, PORT, PROXY_PORT
from modelyard.planning import OURS, ModelPlan, Runner
from modelyard.spec import Environment

ENDPOINT_CHECK = "endpoint-check"
"""Component label of the Jobs that call a model."""

# The label that Kubernetes puts on every namespace.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
# The link-local address of EKS Pod Identity (EKS user guide, pod-id-agent-setup).
_POD_IDENTITY = "169.254.170.23/32"
# The tenth address of EKS' two default Service ranges (EKS API, KubernetesNetworkConfigRequest). In Auto Mode
# DNS has no pods that a policy could select (EKS user guide, auto-networking; aws/containers-roadmap#2552).
_DNS_ADDRESSES = ("10.100.0.10/32", "172.20.0.10/32")

GATEWAYS = "model-gateways"
"""Namespace of the gateways and of their certificates."""
LITELLM = {"app.kubernetes.io/name": "litellm", "app.kubernetes.io/instance": "litellm"}
"""Labels of the LiteLLM proxy's pods."""


def server_policy(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of the server's NetworkPolicy: ingress from callers and Prometheus, egress to DNS; and any
    traffic among the pods of one replica, or between prefill and decode."""
    namespace = environment.namespace
    callers = callers_of(plan, environment)
    if plan.role != "both":
        monitoring = _monitoring(environment)
        # The router calls the servers, and serves the metrics that the picker reads from them.
        others = [pods_of(namespace, router_labels(plan))] if plan.runner.routed else callers
        callers = [*monitoring, *(peer for peer in others if peer not in monitoring)]
    together = _together(plan, namespace)
    egress = [name_resolution(environment), *({"to": [peer]} for peer in together)]
    if plan.traced and environment.monitoring.otlp_endpoint:
        egress.append(_collector(environment.monitoring.otlp_endpoint))
    if plan.model.cache_strategy == "s3-stream":  # S3 has no fixed addresses
        egress += [{"ports": [{"port": 443, "protocol": "TCP"}]}, credentials()]
    return {
        "podSelector": {"matchLabels": _all_pods(plan)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {"from": callers, "ports": _tcp(PORT)},
            *({"from": [peer]} for peer in together),
        ],
        "egress": egress,
    }


def _all_pods(plan: ModelPlan) -> dict[str, str]:
    """The server's pods, workers included."""
    by_set = plan.serving.nodes > 1 and not plan.runner.label
    return {GROUP: plan.name} if by_set else server_labels(plan)


def _together(plan: ModelPlan, namespace: str) -> list[dict[str, Any]]:
    """Traffic among pods that exchange activations or KV blocks, on ports chosen at run time."""
    peers = []
    if plan.serving.nodes > 1:
        peers.append(pods_of(namespace, _all_pods(plan)))
    if plan.role != "both":
        peers.append(pods_of(namespace, pool_labels(plan.model.name)))
    return peers


def router_policy(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    """`spec` of the NetworkPolicy of a disaggregated model's router."""
    replicas = pods_of(environment.namespace, pool_labels(plan.model.name))
    return {
        "podSelector": {"matchLabels": router_labels(plan)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [
            {
                "from": callers_of(plan, environment),
                "ports": _tcp(PROXY_PORT, PICKER_METRICS_PORT),
            }
        ],
        "egress": [
            name_resolution(environment),
            {"to": [replicas], "ports": _tcp(PORT)},
            # Pods are watched at the API server, whose address a policy cannot select.
            {"ports": [{"port": 443, "protocol": "TCP"}]},
        ],
    }


def router_labels(plan: ModelPlan) -> dict[str, str]:
    """Labels that select the router's pods."""
    return {"app.kubernetes.io/name": "router", "app.kubernetes.io/instance": plan.model.name}


def callers_of(plan: ModelPlan, environment: Environment) -> list[dict[str, Any]]:
    """Pods that the model file allows, and Prometheus."""
    clients = [pods_of(client.namespace, client.pod_labels) for client in plan.model.access.allow_from]
    own = clients or [pods_of(environment.namespace, {})]
    ways_in = [] if plan.model.access.exposure == "cluster" else [gateway_pods(plan.model.access.exposure)]
    proxy = [pods_of(environment.namespace, LITELLM)] if environment.litellm and clients else []
    asking = environment.checks.enabled and clients  # without clients, the whole namespace is allowed anyway
    checks = [pods_of(environment.namespace, check_labels(plan.model.name))] if asking else []
    return [*own, *proxy, *checks, *ways_in, *_monitoring(environment)]


def _monitoring(environment: Environment) -> list[dict[str, Any]]:
    monitoring = environment.monitoring
    return [pods_of(monitoring.namespace, {})] if monitoring.enabled else []


def _collector(endpoint: str) -> dict[str, Any]:
    """An egress rule to `http://SERVICE.NAMESPACE:PORT`. A policy matches the pod's port, which for OTLP is
    the Service's."""
    address = urlsplit(endpoint)
    namespace = (address.hostname or "").split(".")[1]
    return {"to": [pods_of(namespace, {})], "ports": [{"port": address.port, "protocol": "TCP"}]}


def gateway_pods(name: str) -> dict[str, Any]:
    """The proxies of a Gateway; the label is Gateway API's (GEP-1762)."""
    return pods_of(GATEWAYS, {"gateway.networking.k8s.io/gateway-name": name})


def check_labels(model: str) -> dict[str, str]:
    """Labels that select the Jobs that call `model`."""
    return {"app.kubernetes.io/component": ENDPOINT_CHECK, "app.kubernetes.io/instance": model}


def check_egress(environment: Environment, runner: Runner = OURS) -> list[dict[str, Any]]:
    """Egress of the check Jobs: DNS, the package index (no fixed address), and the models in the namespace;
    with reports also S3 (no fixed address) and its credentials."""
    return [
        name_resolution(environment),
        {"ports": [{"port": 443, "protocol": "TCP"}]},
        to_models(runner),
        *([credentials()] if environment.reports_checks else []),
    ]


def credentials() -> dict[str, Any]:
    """An egress rule to the EKS Pod Identity agent."""
    return {"to": [{"ipBlock": {"cidr": _POD_IDENTITY}}], "ports": [{"port": 80, "protocol": "TCP"}]}


def to_models(runner: Runner = OURS) -> dict[str, Any]:
    """An egress rule to every pod that answers for a model in the same namespace; `runner` starts the
    servers."""
    answering: dict[str, Any] = (
        {"key": runner.label, "operator": "Exists"}
        if runner.label
        else {"key": "app.kubernetes.io/name", "operator": "In", "values": ["model-server", "router"]}
    )
    return {
        "to": [{"podSelector": {"matchExpressions": [answering]}}],
        "ports": _tcp(PORT, *((PROXY_PORT,) if runner.routed else ())),
    }


def _tcp(*ports: int) -> list[dict[str, Any]]:
    """Ports of pods by number: the VPC CNI's controller finds no names of native sidecars' ports."""
    return [{"port": port, "protocol": "TCP"} for port in ports]


def name_resolution(environment: Environment) -> dict[str, Any]:
    """An egress rule to the cluster's DNS: its pods, or the Service's address if EKS Auto Mode runs DNS on
    the nodes."""
    return dns(auto_mode=environment.cluster.auto_mode)


def dns(*, auto_mode: bool) -> dict[str, Any]:
    """An egress rule to the DNS of a cluster with or without EKS Auto Mode."""
    peers = (
        [{"ipBlock": {"cidr": address}} for address in _DNS_ADDRESSES]
        if auto_mode
        else [pods_of("kube-system", {"k8s-app": "kube-dns"})]
    )
    return {"to": peers, "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}


def pods_of(namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    """A NetworkPolicy peer: pods of `namespace` with `labels`; without labels, all of them."""
    peer: dict[str, Any] = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: namespace}}}
    if labels:
        peer["podSelector"] = {"matchLabels": labels}
    return peer
