"""A served model: everything that runs it, finds it, protects it and watches it."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from modelyard.k8s.autoscaler import Autoscaler
from modelyard.k8s.labels import model_annotations, model_labels, selector_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.model_namespace import PRIORITY_CLASS
from modelyard.k8s.probes import PORT_NAME
from modelyard.k8s.server_network import server_ingress
from modelyard.k8s.server_pod import server_pod
from modelyard.k8s.weights import WeightsFetch, fetched_sources
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

SERVICE_PORT = 80


class ModelServer(Construct):
    """The Kubernetes objects of one model in one environment.

    ServiceAccount, Deployment, Service, NetworkPolicy, PodDisruptionBudget and fetch Jobs; a ServiceMonitor where the
    environment monitors, a ScaledObject where replicas have a range. Clients call `http://MODEL.NAMESPACE/v1`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: ModelPlan,
        environment: Environment,
        priority_class: str = PRIORITY_CLASS,
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
        manifest(
            self,
            "ServiceAccount",
            api_version="v1",
            kind="ServiceAccount",
            automountServiceAccountToken=False,
            **self._common,
        )
        self._fetch_weights()
        manifest(
            self,
            "Deployment",
            api_version="apps/v1",
            kind="Deployment",
            spec=self._deployment_spec(priority_class),
            **self._common,
        )
        manifest(self, "Service", api_version="v1", kind="Service", spec=self._service_spec(), **self._common)
        manifest(
            self,
            "NetworkPolicy",
            api_version="networking.k8s.io/v1",
            kind="NetworkPolicy",
            spec=server_ingress(plan.model, environment, traced=plan.traced),
            **self._common,
        )
        manifest(
            self,
            "PodDisruptionBudget",
            api_version="policy/v1",
            kind="PodDisruptionBudget",
            spec={
                "maxUnavailable": 1,
                "selector": {"matchLabels": selector_labels(plan.name)},
                # A replica that never became ready must not hold up a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
            **self._common,
        )
        if environment.monitoring.enabled:
            self._monitor()
        if plan.model.autoscaled:
            Autoscaler(self, "Autoscaler", plan=plan, environment=environment)

    def _fetch_weights(self) -> None:
        plan = self._plan
        for position, (uri, revision) in enumerate(fetched_sources(plan)):
            WeightsFetch(
                self,
                f"Weights{position}",
                plan=plan,
                uri=uri,
                revision=revision,
                environment=self._environment.name,
                namespace=self._environment.namespace,
                token_secret=plan.token_secret,
            )

    def _deployment_spec(self, priority_class: str) -> dict[str, Any]:
        plan = self._plan
        spec: dict[str, Any] = {
            "selector": {"matchLabels": selector_labels(plan.name)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "maxSurge": plan.rollout.max_surge,
                    "maxUnavailable": plan.rollout.max_unavailable,
                },
            },
            "progressDeadlineSeconds": plan.startup.deadline,
            "revisionHistoryLimit": 5,
            "template": server_pod(
                plan,
                environment=self._environment.name,
                priority_class=priority_class,
                do_not_disrupt=self._environment.strict,
                otlp_endpoint=self._environment.monitoring.otlp_endpoint,
            ),
        }
        if not plan.model.autoscaled:  # an autoscaler's number must not be in Git
            spec["replicas"] = plan.model.replicas.min
        return spec

    def _service_spec(self) -> dict[str, Any]:
        return {
            "type": "ClusterIP",
            "selector": selector_labels(self._plan.name),
            "ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        }

    def _monitor(self) -> None:
        plan, monitoring = self._plan, self._environment.monitoring
        manifest(
            self,
            "ServiceMonitor",
            api_version="monitoring.coreos.com/v1",
            kind="ServiceMonitor",
            **{**self._common, "labels": {**self._common["labels"], **monitoring.labels}},
            spec={
                "selector": {"matchLabels": selector_labels(plan.name)},
                "namespaceSelector": {"matchNames": [self._environment.namespace]},
                "endpoints": [
                    {
                        "port": PORT_NAME,
                        "path": "/metrics",
                        "interval": f"{plan.model.observability.scrape_interval}s",
                        # What rules and dashboards filter by: engines call their model by the client's name for it.
                        "relabelings": [
                            {
                                "action": "replace",
                                "sourceLabels": [
                                    "__meta_kubernetes_service_label_app_kubernetes_io_instance"
                                ],
                                "targetLabel": "model",
                            }
                        ],
                    }
                ],
            },
        )
