"""Monitoring of models and platform: rules, dashboards, and a monitor for every source that the queries
use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelyard.hardware import accelerator_of
from modelyard.names import EXTERNAL_SECRETS, FLUX_NAMESPACE, NODE_POOL_LABEL
from modelyard.objects.labels import model_labels, platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.node_taints import tolerations
from modelyard.observability import RuleGroup, model_groups, platform_groups
from modelyard.observability.dashboards import dashboards
from modelyard.observability.delivery_alerts import FLUX_CONTROLLERS
from modelyard.planning import ModelPlan, Plan
from modelyard.spec import Environment

# Exporters that read devices run as root, so each has its own namespace.
DCGM_NAMESPACE = "dcgm-exporter"
_NEURON_NAMESPACE = "neuron-monitor"

# Neuron's image of 2026-10; the command is the DaemonSet's.
_NEURON_MONITOR = "public.ecr.aws/neuron/neuron-monitor:1.10.0"
_NEURON_PORT = 8000
# Otherwise the exporter's own pod would replace the label of the pod that holds the GPU.
_THEIR_LABELS = {"honorLabels": True}


def model_rules(plan: ModelPlan, environment: Environment) -> Manifest:
    """The PrometheusRule of one model."""
    labels = model_labels(plan, environment.name, component="rules")
    return _rules(
        name=plan.name,
        namespace=environment.namespace,
        labels=labels,
        groups=model_groups(plan, environment.namespace),
        environment=environment,
    )


def platform_monitoring(plan: Plan) -> Iterator[Manifest]:
    """Rules, dashboards and PodMonitors shared by the models of an environment."""
    environment = plan.environment
    monitoring = environment.monitoring
    yield _rules(
        name="modelyard-platform",
        namespace=monitoring.namespace,
        labels=platform_labels("rules"),
        groups=platform_groups(plan),
        environment=environment,
    )
    for name, text in dashboards(plan).items():
        yield manifest(
            api_version="v1",
            kind="ConfigMap",
            name=f"dashboard-{name}",
            namespace=monitoring.namespace,
            labels={**platform_labels("dashboard"), "grafana_dashboard": "1"},
            data={f"modelyard-{environment.name}-{name}.json": text},
        )
    vendors = {accelerator_of(pool.accelerator).vendor for pool in environment.pools.values()}
    yield from _component_monitor(environment, "karpenter", "kube-system", 8080)
    if environment.delivery == "flux":
        # The chart's NetworkPolicy allow-scraping admits every namespace to this port (flux2 2.18.3).
        for controller in FLUX_CONTROLLERS:
            yield _pod_monitor(environment, controller, FLUX_NAMESPACE, {"app": controller}, 8080)
    if environment.secrets and environment.delivery != "none":
        yield from _component_monitor(environment, EXTERNAL_SECRETS, EXTERNAL_SECRETS, 8080, _THEIR_LABELS)
    if any(model.model.autoscaled for model in plan.models):
        yield from _component_monitor(environment, "keda", "keda", 8080, _THEIR_LABELS, name="keda-operator")
    if "nvidia" in vendors:
        yield from _component_monitor(environment, "dcgm-exporter", DCGM_NAMESPACE, 9400, _THEIR_LABELS)
    if "aws" in vendors:
        yield from _neuron_monitor(environment)


def _component_monitor(
    environment: Environment,
    component: str,
    namespace: str,
    port: int,
    endpoint: Mapping[str, Any] | None = None,
    name: str | None = None,  # of its pods, if not the component's
) -> Iterator[Manifest]:
    """A monitor of a component in `namespace`, or wherever an existing cluster has it."""
    name = name or component
    if environment.scrapes(component):
        place = None if environment.cluster.has(component) else namespace
        yield _pod_monitor(environment, name, place, {"app.kubernetes.io/name": name}, port, endpoint)


def _pod_monitor(
    environment: Environment,
    name: str,
    namespace: str | None,  # None: any
    selector: Mapping[str, str],
    port: int,
    endpoint: Mapping[str, Any] | None = None,
) -> Manifest:
    monitoring = environment.monitoring
    return manifest(
        api_version="monitoring.coreos.com/v1",
        kind="PodMonitor",
        name=name,
        namespace=monitoring.namespace,
        labels={**platform_labels("monitor"), **monitoring.labels},
        spec={
            "selector": {"matchLabels": dict(selector)},
            "namespaceSelector": {"matchNames": [namespace]} if namespace else {"any": True},
            "podMetricsEndpoints": [{"portNumber": port, "path": "/metrics", **(endpoint or {})}],
        },
    )


def _neuron_monitor(environment: Environment) -> Iterator[Manifest]:
    """AWS publishes it only as a manifest, not as a chart."""
    pools = sorted(
        name for name, pool in environment.pools.items() if accelerator_of(pool.accelerator).vendor == "aws"
    )
    selector = {"app.kubernetes.io/name": "neuron-monitor"}
    nodes = {"key": NODE_POOL_LABEL, "operator": "In", "values": pools}
    yield manifest(
        api_version="v1",
        kind="Namespace",
        name=_NEURON_NAMESPACE,
        labels={**platform_labels("namespace"), "pod-security.kubernetes.io/enforce": "privileged"},
    )
    yield manifest(
        api_version="apps/v1",
        kind="DaemonSet",
        name="neuron-monitor",
        namespace=_NEURON_NAMESPACE,
        labels={**platform_labels("exporter"), **selector},
        spec={
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": {**platform_labels("exporter"), **selector}},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "affinity": _required_nodes(nodes),
                    "tolerations": tolerations(environment, pools),
                    "containers": [_neuron_container()],
                },
            },
        },
    )
    yield _pod_monitor(environment, "neuron-monitor", _NEURON_NAMESPACE, selector, _NEURON_PORT)


def _neuron_container() -> dict[str, Any]:
    script = f"neuron-monitor | neuron-monitor-prometheus.py --port {_NEURON_PORT}"
    return {
        "name": "neuron-monitor",
        "image": _NEURON_MONITOR,
        "command": ["/bin/sh", "-c", script],
        "ports": [{"name": "metrics", "containerPort": _NEURON_PORT}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"privileged": True},  # it opens every /dev/neuron* of the node
    }


def _required_nodes(expression: Mapping[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [dict(expression)]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _rules(
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    groups: Sequence[RuleGroup],
    environment: Environment,
) -> Manifest:
    monitoring = environment.monitoring
    return manifest(
        api_version="monitoring.coreos.com/v1",
        kind="PrometheusRule",
        name=name,
        namespace=namespace,
        labels={**labels, **monitoring.labels},
        spec={"groups": [group.document(monitoring.runbooks) for group in groups]},
    )
