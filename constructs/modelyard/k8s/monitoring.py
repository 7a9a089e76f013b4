"""What watches models and the platform: rules, dashboards, and the monitors of everybody whom the queries ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constructs import Construct

from modelyard.hardware import accelerator_of
from modelyard.k8s.labels import model_labels, platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.observability import RuleGroup, model_groups, platform_groups
from modelyard.observability.dashboards import dashboards
from modelyard.planning import ModelPlan, Plan
from modelyard.spec import Environment

# Exporters that read devices run as root; each has a namespace of its own for it.
DCGM_NAMESPACE = "dcgm-exporter"
_NEURON_NAMESPACE = "neuron-monitor"

# Neuron's image of 2026-10; the command is the one of its DaemonSet.
_NEURON_MONITOR = "public.ecr.aws/neuron/neuron-monitor:1.10.0"
_NEURON_PORT = 8000
# Without this the pod that holds a GPU would be replaced by the exporter's own.
_THEIR_LABELS = {"honorLabels": True}


class ModelRules(Construct):
    """The PrometheusRule of one model."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id)
        labels = model_labels(plan, environment.name, component="rules")
        _rules(
            self,
            name=plan.name,
            namespace=environment.namespace,
            labels=labels,
            groups=model_groups(plan, environment.namespace),
            environment=environment,
        )


class PlatformMonitoring(Construct):
    """Rules, dashboards and PodMonitors of what the models of an environment share."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, autoscaling: bool) -> None:
        super().__init__(scope, construct_id)
        environment = plan.environment
        self._environment = environment
        monitoring = environment.monitoring
        _rules(
            self,
            name="modelyard-platform",
            namespace=monitoring.namespace,
            labels=platform_labels("rules"),
            groups=platform_groups(plan),
            environment=environment,
        )
        for name, text in dashboards(plan).items():
            manifest(
                self,
                f"Dashboard-{name}",
                api_version="v1",
                kind="ConfigMap",
                name=f"dashboard-{name}",
                namespace=monitoring.namespace,
                labels={**platform_labels("dashboard"), "grafana_dashboard": "1"},
                data={f"modelyard-{environment.name}-{name}.json": text},
            )
        vendors = {accelerator_of(pool.accelerator).vendor for pool in environment.pools.values()}
        self._pod_monitor("karpenter", "kube-system", {"app.kubernetes.io/name": "karpenter"}, 8080)
        if autoscaling:
            self._pod_monitor(
                "keda-operator", "keda", {"app.kubernetes.io/name": "keda-operator"}, 8080, _THEIR_LABELS
            )
        if "nvidia" in vendors:
            selector = {"app.kubernetes.io/name": "dcgm-exporter"}
            self._pod_monitor("dcgm-exporter", DCGM_NAMESPACE, selector, 9400, _THEIR_LABELS)
        if "aws" in vendors:
            self._neuron_monitor()

    def _pod_monitor(
        self,
        name: str,
        namespace: str,
        selector: Mapping[str, str],
        port: int,
        endpoint: Mapping[str, Any] | None = None,
    ) -> None:
        monitoring = self._environment.monitoring
        manifest(
            self,
            f"PodMonitor-{name}",
            api_version="monitoring.coreos.com/v1",
            kind="PodMonitor",
            name=name,
            namespace=monitoring.namespace,
            labels={**platform_labels("monitor"), **monitoring.labels},
            spec={
                "selector": {"matchLabels": dict(selector)},
                "namespaceSelector": {"matchNames": [namespace]},
                "podMetricsEndpoints": [{"portNumber": port, "path": "/metrics", **(endpoint or {})}],
            },
        )

    def _neuron_monitor(self) -> None:
        """AWS publishes it as a manifest, in none of its charts."""
        pools = [
            (name, accelerator_of(pool.accelerator))
            for name, pool in self._environment.pools.items()
            if accelerator_of(pool.accelerator).vendor == "aws"
        ]
        selector = {"app.kubernetes.io/name": "neuron-monitor"}
        nodes = {
            "key": "karpenter.sh/nodepool",
            "operator": "In",
            "values": sorted(name for name, _ in pools),
        }
        taints = sorted({accelerator.taint for _, accelerator in pools})
        manifest(
            self,
            "NeuronNamespace",
            api_version="v1",
            kind="Namespace",
            name=_NEURON_NAMESPACE,
            labels={**platform_labels("namespace"), "pod-security.kubernetes.io/enforce": "privileged"},
        )
        manifest(
            self,
            "NeuronMonitor",
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
                        "tolerations": [
                            {"key": taint, "operator": "Exists", "effect": "NoSchedule"} for taint in taints
                        ],
                        "containers": [_neuron_container()],
                    },
                },
            },
        )
        self._pod_monitor("neuron-monitor", _NEURON_NAMESPACE, selector, _NEURON_PORT)


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
    scope: Construct,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    groups: Sequence[RuleGroup],
    environment: Environment,
) -> None:
    monitoring = environment.monitoring
    manifest(
        scope,
        "Rules",
        api_version="monitoring.coreos.com/v1",
        kind="PrometheusRule",
        name=name,
        namespace=namespace,
        labels={**labels, **monitoring.labels},
        spec={"groups": [group.document(monitoring.runbooks) for group in groups]},
    )
