"""Chart of the Helm releases that the platform stands on. Versions were current on 2026-11-21."""

from __future__ import annotations

from typing import Any, Literal

from cdk8s import Chart
from constructs import Construct

from modelyard.engines import metrics_of_exporter
from modelyard.hardware import accelerator_of
from modelyard.k8s import HelmAddon
from modelyard.k8s.git_addon import GitAddon
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.monitoring import DCGM_NAMESPACE
from modelyard.planning import Plan

_KARPENTER_REPOSITORY = "oci://public.ecr.aws/karpenter"
_KARPENTER_VERSION = "1.14.1"


class AddonsChart(Chart):
    """Karpenter, device plugins, External Secrets, and Prometheus and KEDA where models use them."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        environment = plan.environment
        autoscaling = any(model.model.autoscaled for model in plan.models)
        self._environment = environment
        self._engine: Literal["flux", "argocd"] = "argocd" if environment.delivery == "argocd" else "flux"
        self._karpenter()
        self._device_plugins()
        if environment.secrets:
            self._namespace("external-secrets", "restricted")
            self._addon(
                "external-secrets",
                namespace="external-secrets",
                repository="https://charts.external-secrets.io",
                version="2.9.0",
                values={"serviceAccount": {"name": "external-secrets"}},
            )
        if environment.monitoring.enabled and environment.monitoring.install:
            self._prometheus()
        if environment.monitoring.enabled:
            self._gpu_metrics()
        if autoscaling:
            self._namespace("keda", "restricted")
            self._addon(
                "keda",
                namespace="keda",
                repository="https://kedacore.github.io/charts",
                version="2.20.2",
                values={"prometheus": {"operator": {"enabled": True}}},
            )

        if any(model.serving.nodes > 1 for model in plan.models):
            self._groups()
        if any(model.role != "both" for model in plan.models):
            self._definitions("gateway-api-inference-extension", "v1.6.0", "config/crd")
        if environment.gateways.internal or environment.gateways.public:
            self._gateways()

    def _groups(self) -> None:
        """Replicas of several nodes: their controller, and the fabric between them."""
        self._namespace("lws-system", "restricted")
        self._addon(
            "lws", namespace="lws-system", repository="oci://registry.k8s.io/lws/charts", version="0.10.0"
        )
        fabric = [name for name, pool in self._environment.pools.items() if pool.fabric == "efa"]
        taints = sorted({accelerator_of(self._environment.pools[n].accelerator).taint for n in fabric})
        self._addon(
            "aws-efa-k8s-device-plugin",
            namespace="kube-system",
            repository="https://aws.github.io/eks-charts",
            version="v0.5.1",
            values={
                "affinity": _on_pools(fabric),
                "tolerations": [{"key": t, "operator": "Exists", "effect": "NoSchedule"} for t in taints],
            },
        )

    def _gateways(self) -> None:
        """Gateway API, and Istio as its controller; no mesh: pods get no sidecars."""
        self._definitions("gateway-api", "v1.6.1", "config/crd")
        self._namespace("istio-system", "restricted")
        for chart, after in (("base", ()), ("istiod", ("base",))):
            self._addon(
                chart,
                namespace="istio-system",
                repository="https://istio-release.storage.googleapis.com/charts",
                version="1.29.2",
                after=after,
            )

    def _definitions(self, project: str, tag: str, path: str) -> None:
        GitAddon(
            self,
            f"Definitions-{project}",
            engine=self._engine,
            name=project,
            url=f"https://github.com/kubernetes-sigs/{project}",
            tag=tag,
            path=path,
        )

    def _karpenter(self) -> None:
        cluster = self._environment.cluster_name
        # Helm never upgrades definitions that a chart carries in crds/, so they are a release of their own.
        self._addon(
            "karpenter-crd",
            namespace="kube-system",
            repository=_KARPENTER_REPOSITORY,
            version=_KARPENTER_VERSION,
        )
        self._addon(
            "karpenter",
            namespace="kube-system",
            repository=_KARPENTER_REPOSITORY,
            version=_KARPENTER_VERSION,
            values={
                "settings": {"clusterName": cluster, "interruptionQueue": cluster},
                "serviceAccount": {"name": "karpenter"},
                "controller": {
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
                },
            },
            after=("karpenter-crd",),
            definitions=False,
        )

    def _device_plugins(self) -> None:
        pools = self._environment.pools
        vendors = {name: accelerator_of(pool.accelerator).vendor for name, pool in pools.items()}
        # Bottlerocket's NVIDIA image brings its own plugin; two would both register the GPUs.
        nvidia = [n for n, pool in pools.items() if vendors[n] == "nvidia" and pool.ami.startswith("al2023")]
        if nvidia:
            self._addon(
                "nvidia-device-plugin",
                namespace="kube-system",
                repository="https://nvidia.github.io/k8s-device-plugin",
                version="0.20.0",
                values={
                    "affinity": _on_pools(nvidia),
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                },
            )
        if "aws" in vendors.values():
            self._addon(
                "neuron-helm-chart",
                namespace="kube-system",
                repository="oci://public.ecr.aws/neuron",
                version="1.10.0",
                values={"npd": {"enabled": False}},
            )

    def _gpu_metrics(self) -> None:
        pools = self._environment.pools
        nvidia = {n: accelerator_of(p.accelerator) for n, p in pools.items()}
        nvidia = {name: found for name, found in nvidia.items() if found.vendor == "nvidia"}
        if not nvidia:
            return
        self._namespace(DCGM_NAMESPACE, "privileged")  # the exporter reads devices as root
        taints = sorted({found.taint for found in nvidia.values()})
        self._addon(
            "dcgm-exporter",
            namespace=DCGM_NAMESPACE,
            repository="https://nvidia.github.io/dcgm-exporter/helm-charts",
            version=metrics_of_exporter("dcgm-exporter").version,  # later ones rename what the rules ask for
            values={
                "affinity": _on_pools(list(nvidia)),
                "tolerations": [{"key": t, "operator": "Exists", "effect": "NoSchedule"} for t in taints],
                # The PodMonitor is ours: Prometheus' definitions may not be there when this is installed.
                "serviceMonitor": {"enabled": False},
                "customMetrics": dcgm_counters(),
            },
        )

    def _prometheus(self) -> None:
        namespace = self._environment.monitoring.namespace
        self._namespace(namespace, "privileged")  # node-exporter reads the host
        self._addon(
            "kube-prometheus-stack",
            namespace=namespace,
            repository="https://prometheus-community.github.io/helm-charts",
            version="88.2.0",
            values={
                "prometheus": {
                    "prometheusSpec": {
                        "serviceMonitorSelectorNilUsesHelmValues": True,
                        "retention": "15d",
                    }
                }
            },
        )

    def _namespace(self, name: str, level: str) -> None:
        manifest(
            self,
            f"Namespace-{name}",
            api_version="v1",
            kind="Namespace",
            name=name,
            labels={**platform_labels("namespace"), "pod-security.kubernetes.io/enforce": level},
        )

    def _addon(
        self,
        name: str,
        *,
        namespace: str,
        repository: str,
        version: str,
        values: dict[str, Any] | None = None,
        after: tuple[str, ...] = (),
        definitions: bool = True,
    ) -> None:
        HelmAddon(
            self,
            name,
            engine=self._engine,
            name=name,
            namespace=namespace,
            repository=repository,
            chart=name,
            version=version,
            values=values or {},
            after=after,
            definitions=definitions,
        )


def _on_pools(names: list[str]) -> dict[str, Any]:
    expression = {"key": "karpenter.sh/nodepool", "operator": "In", "values": sorted(names)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def dcgm_counters() -> str:
    """The exporter's list of counters: those of the metric table, so that what rules ask for is collected."""
    families = metrics_of_exporter("dcgm-exporter").families.values()
    return "".join(f"{metric.name}, {metric.type}, {metric.help}\n" for metric in families)
