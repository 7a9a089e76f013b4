"""A served model: everything that runs it, finds it, protects it and watches it."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from modelyard.engines.triton import model_repository
from modelyard.k8s.autoscaler import Autoscaler
from modelyard.k8s.gateways import route
from modelyard.k8s.labels import model_annotations, model_labels, selector_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.probes import PORT_NAME
from modelyard.k8s.router import Router
from modelyard.k8s.serve_settings import serve_settings
from modelyard.k8s.server_network import router_policy, server_policy
from modelyard.k8s.server_pod import repository_key
from modelyard.k8s.workloads import batch_job, batch_name, deployment, leader_worker_set, workload_kind
from modelyard.manifests.pods import AVAILABILITY
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

SERVICE_PORT = 80


class ModelServer(Construct):
    """The Kubernetes objects of one model in one environment.

    ServiceAccount, Deployment or LeaderWorkerSet, Service, NetworkPolicy and PodDisruptionBudget; a ServiceMonitor where
    the environment monitors, a ScaledObject where replicas have a range, a router where prefill and decode are apart.
    Clients call `http://MODEL.NAMESPACE/v1`. A batch model is a Job or a CronJob instead.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: ModelPlan,
        environment: Environment,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        self._environment = environment
        self._common: dict[str, Any] = {
            "name": plan.name,
            "namespace": environment.namespace,
            "labels": model_labels(plan, environment.name),
            "annotations": model_annotations(plan),
        }
        self._add("v1", "ServiceAccount", automountServiceAccountToken=False)
        if plan.serving.release.engine == "triton":
            files = model_repository(serve_settings(plan))
            self._add(
                "v1",
                "ConfigMap",
                name=f"{plan.name}-repository",
                data={repository_key(path): text for path, text in files.items()},
            )
        if plan.model.batch:
            self._batch()
            return
        version, kind = workload_kind(plan)
        make = leader_worker_set if kind == "LeaderWorkerSet" else deployment
        together = not plan.zonal and plan.model.replicas.max > 1
        stated = {AVAILABILITY: "single"} if together else {}
        annotations = self._common["annotations"] | stated
        self._add(version, kind, spec=make(plan, environment), annotations=annotations)
        self._add("networking.k8s.io/v1", "NetworkPolicy", spec=server_policy(plan, environment))
        self._add(
            "policy/v1",
            "PodDisruptionBudget",
            spec={
                "maxUnavailable": 1,
                "selector": {"matchLabels": selector_labels(plan.name)},
                # A replica that never became ready must not hold up a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        )
        # The model's own name is what clients call: its router, where there is one.
        name = f"{plan.name}-decode" if plan.role == "decode" else plan.name
        self._add("v1", "Service", name=name, spec=self._service())
        if plan.role == "decode":
            Router(self, "Router", plan=plan, environment=environment)
            self._add(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                construct_id="RouterPolicy",
                name=f"{plan.model.name}-router",
                labels=model_labels(plan, environment.name, component="router"),
                spec=router_policy(plan, environment),
            )
        if plan.role != "prefill" and (gateway := environment.gateways.of(plan.model.access.exposure)):
            host = plan.model.access.host or f"{plan.model.name}.{gateway.domain}"
            self._add(
                "gateway.networking.k8s.io/v1",
                "HTTPRoute",
                spec=route(plan.model.access.exposure, host, service=plan.model.name, port=SERVICE_PORT),
            )
        if environment.monitoring.enabled:
            self._monitor()
        if plan.model.autoscaled:
            Autoscaler(self, "Autoscaler", plan=plan, environment=environment)

    def _add(self, version: str, kind: str, *, construct_id: str = "", **fields: Any) -> None:
        manifest(self, construct_id or kind, api_version=version, kind=kind, **{**self._common, **fields})

    def _service(self) -> dict[str, Any]:
        return {
            "type": "ClusterIP",
            "selector": selector_labels(self._plan.name),
            "ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        }

    def _batch(self) -> None:
        plan, spec = self._plan, batch_job(self._plan, self._environment)
        batch = plan.model.batch
        labels = model_labels(plan, self._environment.name, component="batch")
        fields: dict[str, Any] = {"name": batch_name(plan, spec), "labels": labels}
        if batch and batch.schedule:
            cron = {
                "schedule": batch.schedule,
                "concurrencyPolicy": "Forbid",  # two runs would write the same file
                "startingDeadlineSeconds": 3600,
                "jobTemplate": {"metadata": {"labels": labels}, "spec": spec},
            }
            self._add("batch/v1", "CronJob", spec=cron, **fields)
        else:
            self._add("batch/v1", "Job", spec=spec, **fields)
        self._add(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            labels=labels,
            spec={
                "podSelector": {
                    "matchLabels": {
                        "app.kubernetes.io/name": "batch",
                        "app.kubernetes.io/instance": plan.name,
                    }
                },
                "policyTypes": ["Ingress", "Egress"],
                "egress": server_policy(plan, self._environment)["egress"],
            },
        )

    def _monitor(self) -> None:
        plan, monitoring = self._plan, self._environment.monitoring
        release = plan.serving.release
        endpoint: dict[str, Any] = {
            "port": PORT_NAME,
            "path": release.metrics_path,
            "interval": f"{plan.model.observability.scrape_interval}s",
            # What rules and dashboards filter by: engines call their model by the client's name for it.
            "relabelings": [
                {
                    "action": "replace",
                    "sourceLabels": ["__meta_kubernetes_service_label_app_kubernetes_io_instance"],
                    "targetLabel": "model",
                }
            ],
        }
        if release.metrics_need_key and plan.model.access.api_key:
            credentials = {"name": plan.model.access.api_key, "key": "value"}
            endpoint["authorization"] = {"type": "Bearer", "credentials": credentials}
        self._add(
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            labels={**self._common["labels"], **monitoring.labels},
            spec={
                "selector": {"matchLabels": selector_labels(plan.name)},
                "namespaceSelector": {"matchNames": [self._environment.namespace]},
                "endpoints": [endpoint],
            },
        )
