"""Helm releases that the platform needs, at the versions of `modelyard.releases`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from modelyard.engines import metrics_of_exporter
from modelyard.hardware import Prices, accelerator_of
from modelyard.names import EXTERNAL_SECRETS, METRICS_ACCOUNT, METRICS_VARIABLE, NODE_POOL_LABEL
from modelyard.objects.delivery.argocd import argo_server
from modelyard.objects.delivery.git_addon import git_addon
from modelyard.objects.delivery.helm_addon import helm_addon
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.monitoring.delivery_states import flux_states
from modelyard.objects.monitoring.metrics_volume import metrics_class, prometheus_storage
from modelyard.objects.monitoring.monitors import DCGM_NAMESPACE
from modelyard.objects.monitoring.paging import alertmanager_values
from modelyard.objects.node_taints import tolerations
from modelyard.objects.platform.accelerator_pool import stated_prices
from modelyard.planning import Plan
from modelyard.planning.components import missing_components, pools_with_plugin
from modelyard.releases import chart, definitions
from modelyard.spec import Environment

# Charts that leave it out fail Pod Security `restricted`.
_SECCOMP = {"type": "RuntimeDefault"}


def addons(plan: Plan) -> Iterator[Manifest]:
    """Karpenter, device plugins, External Secrets; Prometheus and KEDA if models use them; nothing that an
    existing cluster has."""
    environment = plan.environment
    missing = missing_components(environment, plan.models)
    if "karpenter" in missing:
        yield from _karpenter(environment, plan.prices)
    if "nvidia-device-plugin" in missing:
        yield from _nvidia_plugin(environment)
    if "neuron-device-plugin" in missing:
        yield from _neuron_plugin(environment)
    if EXTERNAL_SECRETS in missing:
        yield _namespace(EXTERNAL_SECRETS, "restricted")
        yield from _addon(
            environment,
            EXTERNAL_SECRETS,
            namespace=EXTERNAL_SECRETS,
            values={"serviceAccount": {"name": EXTERNAL_SECRETS}},
        )
    if environment.monitoring.enabled and environment.monitoring.install:
        yield from _prometheus(environment)
    if "dcgm-exporter" in missing:
        yield from _gpu_metrics(environment)
    if "keda" in missing:
        yield _namespace("keda", "restricted")
        yield from _addon(
            environment,
            "keda",
            namespace="keda",
            values={"prometheus": {"operator": {"enabled": True}}},
        )
    if "lws" in missing:
        yield _namespace("lws-system", "restricted")
        yield from _addon(
            environment,
            "lws",
            namespace="lws-system",
            values={"podSecurityContext": {"runAsNonRoot": True, "seccompProfile": _SECCOMP}},
        )
    if "aws-efa-k8s-device-plugin" in missing:
        yield from _efa_plugin(environment)
    for project in ("gateway-api-inference-extension", "gateway-api"):
        if project in missing:
            yield from _definitions(environment, project)
    if "istio" in missing:
        yield from _istio(environment)


def _efa_plugin(environment: Environment) -> Iterator[Manifest]:
    fabric = [name for name, pool in environment.pools.items() if pool.fabric == "efa"]
    yield from _addon(
        environment,
        "aws-efa-k8s-device-plugin",
        namespace="kube-system",
        values={
            # The chart makes its affinity of these and ignores the value `affinity`.
            "supportedInstanceLabels": {"keys": [NODE_POOL_LABEL], "values": sorted(fabric)},
            "tolerations": tolerations(environment, fabric),
        },
    )


def _istio(environment: Environment) -> Iterator[Manifest]:
    """Istio as the controller of Gateway API; no mesh: pods get no sidecars."""
    yield _namespace("istio-system", "restricted")
    yield from _addon(environment, "base", namespace="istio-system")
    yield from _addon(
        environment,
        "istiod",
        namespace="istio-system",
        values={"seccompProfile": _SECCOMP, "gateways": {"seccompProfile": _SECCOMP}},
        after=("base",),
    )


def _definitions(environment: Environment, project: str) -> Iterator[Manifest]:
    release = definitions(project)
    yield from git_addon(
        engine=_engine(environment),
        name=project,
        url=release.url,
        tag=release.tag,
        path=release.path,
        server=argo_server(environment),
    )


def _karpenter(environment: Environment, prices: Prices) -> Iterator[Manifest]:
    cluster = environment.cluster_name
    # Helm never upgrades CRDs in a chart's crds/, so they are a release of their own.
    yield from _addon(environment, "karpenter-crd", namespace="kube-system")
    yield from _addon(
        environment,
        "karpenter",
        namespace="kube-system",
        values={
            "settings": {
                "clusterName": cluster,
                "interruptionQueue": cluster,
                "enableZonalShift": environment.cluster.zonal_shift,
                "featureGates": {
                    "nodeRepair": environment.cluster.node_repair,
                    "nodeOverlay": bool(stated_prices(environment, prices)),
                    "staticCapacity": any(pool.nodes for pool in environment.pools.values()),
                },
            },
            "serviceAccount": {"name": "karpenter"},
            "controller": {
                "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
            },
        },
        after=("karpenter-crd",),
        definitions=False,
    )


def _nvidia_plugin(environment: Environment) -> Iterator[Manifest]:
    pools = pools_with_plugin(environment)
    yield from _addon(
        environment,
        "nvidia-device-plugin",
        namespace="kube-system",
        values={
            "affinity": _on_pools(pools),
            "tolerations": tolerations(environment, pools),
        },
    )


def _neuron_plugin(environment: Environment) -> Iterator[Manifest]:
    pools = [n for n, p in environment.pools.items() if accelerator_of(p.accelerator).vendor == "aws"]
    yield from _addon(
        environment,
        "neuron-helm-chart",
        namespace="kube-system",
        values={"npd": {"enabled": False}, "devicePlugin": {"tolerations": tolerations(environment, pools)}},
    )


def _gpu_metrics(environment: Environment) -> Iterator[Manifest]:
    pools = environment.pools
    nvidia = {n: accelerator_of(p.accelerator) for n, p in pools.items()}
    nvidia = {name: found for name, found in nvidia.items() if found.vendor == "nvidia"}
    yield _namespace(DCGM_NAMESPACE, "privileged")  # the exporter reads devices as root
    yield from _addon(
        environment,
        "dcgm-exporter",
        namespace=DCGM_NAMESPACE,
        values={
            "affinity": _on_pools(list(nvidia)),
            "tolerations": tolerations(environment, nvidia),
            # The PodMonitor is rendered separately: Prometheus' CRDs may not exist yet when this is
            # installed.
            "serviceMonitor": {"enabled": False},
            "customMetrics": dcgm_counters(),
        },
    )


def _prometheus(environment: Environment) -> Iterator[Manifest]:
    namespace = environment.monitoring.namespace
    yield _namespace(namespace, "privileged")  # node-exporter reads the host
    yield metrics_class(environment)
    yield from _addon(
        environment,
        "kube-prometheus-stack",
        namespace=namespace,
        values={
            **{part: {"enabled": False} for part in ("kubeEtcd", "kubeScheduler", "kubeControllerManager")},
            **alertmanager_values(environment),
            **flux_states(environment),
            "prometheus": {
                "serviceAccount": {"name": METRICS_ACCOUNT},
                "prometheusSpec": {
                    "serviceMonitorSelectorNilUsesHelmValues": True,
                    **prometheus_storage(environment),
                    **(
                        {"remoteWrite": [_managed_workspace(environment)]}
                        if environment.monitoring.managed
                        else {}
                    ),
                },
            },
        },
    )


def _managed_workspace(environment: Environment) -> dict[str, Any]:
    return {
        "url": "${" + METRICS_VARIABLE + "}api/v1/remote_write",
        "sigv4": {"region": environment.region},
        # Samples wait in memory while AWS throttles; the numbers are from AWS' own guide.
        "queueConfig": {"maxSamplesPerSend": 1000, "maxShards": 200, "capacity": 2500},
    }


def _namespace(name: str, level: str) -> Manifest:
    return manifest(
        api_version="v1",
        kind="Namespace",
        name=name,
        labels={**platform_labels("namespace"), "pod-security.kubernetes.io/enforce": level},
    )


def _addon(
    environment: Environment,
    name: str,
    *,
    namespace: str,
    values: dict[str, Any] | None = None,
    after: tuple[str, ...] = (),
    definitions: bool = True,
) -> Iterator[Manifest]:
    release, pulled = chart(name), environment.routes
    yield from helm_addon(
        engine=_engine(environment),
        name=name,
        namespace=namespace,
        repository=pulled.chart(release),
        chart=name,
        version=release.version,
        values=pulled.values(release, values or {}),
        after=after,
        definitions=definitions,
        server=argo_server(environment),
    )


def _engine(environment: Environment) -> Literal["flux", "argocd"]:
    return "argocd" if environment.delivery == "argocd" else "flux"


def _on_pools(names: list[str]) -> dict[str, Any]:
    expression = {"key": NODE_POOL_LABEL, "operator": "In", "values": sorted(names)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def dcgm_counters() -> str:
    """The DCGM exporter's counters: those of the metric table, so that every metric in a rule is
    collected."""
    families = metrics_of_exporter("dcgm-exporter").families.values()
    return "".join(f"{metric.name}, {metric.type}, {metric.help}\n" for metric in families)
