"""Chart of the Helm releases that the platform stands on, at the versions of `modelyard.releases`."""

from __future__ import annotations

from typing import Any, Literal

from cdk8s import Chart
from constructs import Construct

from modelyard.engines import metrics_of_exporter
from modelyard.hardware import accelerator_of
from modelyard.k8s import HelmAddon
from modelyard.k8s.accelerator_pool import stated_prices
from modelyard.k8s.argocd import argo_server
from modelyard.k8s.git_addon import GitAddon
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.monitoring import DCGM_NAMESPACE
from modelyard.planning import Plan
from modelyard.planning.identity import METRICS_ACCOUNT, METRICS_VARIABLE
from modelyard.releases import chart, definitions


class AddonsChart(Chart):
    """Karpenter, device plugins, External Secrets, and Prometheus and KEDA where models use them."""

    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        environment = plan.environment
        autoscaling = any(model.model.autoscaled for model in plan.models)
        self._environment = environment
        self._engine: Literal["flux", "argocd"] = "argocd" if environment.delivery == "argocd" else "flux"
        if not environment.cluster.auto_mode:
            self._karpenter()
            self._device_plugins()
        if environment.secrets:
            self._namespace("external-secrets", "restricted")
            self._addon(
                "external-secrets",
                namespace="external-secrets",
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
                values={"prometheus": {"operator": {"enabled": True}}},
            )

        if any(model.serving.nodes > 1 for model in plan.models):
            self._groups()
        if any(model.role != "both" for model in plan.models):
            self._definitions("gateway-api-inference-extension")
        if environment.gateways.internal or environment.gateways.public:
            self._gateways()

    def _groups(self) -> None:
        """Replicas of several nodes: their controller, and the fabric between them."""
        self._namespace("lws-system", "restricted")
        self._addon("lws", namespace="lws-system")
        fabric = [name for name, pool in self._environment.pools.items() if pool.fabric == "efa"]
        taints = sorted({accelerator_of(self._environment.pools[n].accelerator).taint for n in fabric})
        self._addon(
            "aws-efa-k8s-device-plugin",
            namespace="kube-system",
            values={
                "affinity": _on_pools(fabric),
                "tolerations": [{"key": t, "operator": "Exists", "effect": "NoSchedule"} for t in taints],
            },
        )

    def _gateways(self) -> None:
        """Gateway API, and Istio as its controller; no mesh: pods get no sidecars."""
        self._definitions("gateway-api")
        self._namespace("istio-system", "restricted")
        self._addon("base", namespace="istio-system")
        self._addon("istiod", namespace="istio-system", after=("base",))

    def _definitions(self, project: str) -> None:
        release = definitions(project)
        GitAddon(
            self,
            f"Definitions-{project}",
            engine=self._engine,
            name=project,
            url=release.url,
            tag=release.tag,
            path=release.path,
            server=argo_server(self._environment),
        )

    def _karpenter(self) -> None:
        cluster = self._environment.cluster_name
        # Helm never upgrades definitions that a chart carries in crds/, so they are a release of their own.
        self._addon("karpenter-crd", namespace="kube-system")
        self._addon(
            "karpenter",
            namespace="kube-system",
            values={
                "settings": {
                    "clusterName": cluster,
                    "interruptionQueue": cluster,
                    "enableZonalShift": self._environment.cluster.zonal_shift,
                    "featureGates": {
                        "nodeRepair": self._environment.cluster.node_repair,
                        "nodeOverlay": bool(stated_prices(self._environment)),
                        "staticCapacity": any(pool.nodes for pool in self._environment.pools.values()),
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

    def _device_plugins(self) -> None:
        pools = self._environment.pools
        vendors = {name: accelerator_of(pool.accelerator).vendor for name, pool in pools.items()}
        # Bottlerocket's NVIDIA image brings its own plugin; two would both register the GPUs.
        nvidia = [n for n, pool in pools.items() if vendors[n] == "nvidia" and pool.ami.startswith("al2023")]
        if nvidia:
            self._addon(
                "nvidia-device-plugin",
                namespace="kube-system",
                values={
                    "affinity": _on_pools(nvidia),
                    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                },
            )
        if "aws" in vendors.values():
            self._addon(
                "neuron-helm-chart",
                namespace="kube-system",
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
            values={
                "prometheus": {
                    "serviceAccount": {"name": METRICS_ACCOUNT},
                    "prometheusSpec": {
                        "serviceMonitorSelectorNilUsesHelmValues": True,
                        "retention": "15d",
                        **(
                            {"remoteWrite": [self._managed_workspace()]}
                            if self._environment.monitoring.managed
                            else {}
                        ),
                    },
                }
            },
        )

    def _managed_workspace(self) -> dict[str, Any]:
        return {
            "url": "${" + METRICS_VARIABLE + "}api/v1/remote_write",
            "sigv4": {"region": self._environment.region},
            # Samples wait in memory while AWS throttles; these are the figures of AWS' own guide.
            "queueConfig": {"maxSamplesPerSend": 1000, "maxShards": 200, "capacity": 2500},
        }

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
        values: dict[str, Any] | None = None,
        after: tuple[str, ...] = (),
        definitions: bool = True,
    ) -> None:
        release = chart(name)
        HelmAddon(
            self,
            name,
            engine=self._engine,
            name=name,
            namespace=namespace,
            repository=release.repository,
            chart=name,
            version=release.version,
            values=values or {},
            after=after,
            definitions=definitions,
            server=argo_server(self._environment),
        )


def _on_pools(names: list[str]) -> dict[str, Any]:
    expression = {"key": "karpenter.sh/nodepool", "operator": "In", "values": sorted(names)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def dcgm_counters() -> str:
    """The exporter's list of counters: those of the metric table, so that what rules ask for is collected."""
    families = metrics_of_exporter("dcgm-exporter").families.values()
    return "".join(f"{metric.name}, {metric.type}, {metric.help}\n" for metric in families)
