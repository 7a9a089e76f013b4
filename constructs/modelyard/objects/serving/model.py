"""A served model: its workload, Service, policies and monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.engines import engine
from modelyard.names import AUTOSCALED_LABEL
from modelyard.object_rules.pods import AVAILABILITY
from modelyard.objects.labels import answering_labels, model_annotations, model_labels, selector_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import router_policy, server_policy
from modelyard.objects.pods.ports import PORT_NAME, SERVICE_PORT
from modelyard.objects.serving.autoscaler import scaled_object
from modelyard.objects.serving.pod import repository_key
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.serving.workloads import (
    batch_job,
    batch_name,
    deployment,
    leader_worker_set,
    workload_kind,
)
from modelyard.objects.traffic.gateways import route
from modelyard.objects.traffic.router import router
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


def model_server(plan: ModelPlan, environment: Environment) -> Iterator[Manifest]:
    """The objects of one model in one environment.

    ServiceAccount, Deployment or LeaderWorkerSet, Service, NetworkPolicy and PodDisruptionBudget; a
    ServiceMonitor with monitoring, a ScaledObject if replicas have a range, a router if prefill and decode
    are separate. Clients call `http://MODEL.NAMESPACE/v1`. A batch model is a Job or a CronJob instead.
    """
    common = _common(plan, environment)
    yield manifest(api_version="v1", kind="ServiceAccount", automountServiceAccountToken=False, **common)
    if files := engine(plan.serving.release.engine).files(serve_settings(plan)):
        yield manifest(
            api_version="v1",
            kind="ConfigMap",
            data={repository_key(path): text for path, text in files.items()},
            **common | {"name": f"{plan.name}-repository"},
        )
    yield from _batch(plan, environment) if plan.model.batch else _endpoint(plan, environment)


def _common(plan: ModelPlan, environment: Environment) -> dict[str, Any]:
    return {
        "name": plan.name,
        "namespace": environment.namespace,
        "labels": model_labels(plan, environment.name),
        "annotations": model_annotations(plan),
    }


def _endpoint(plan: ModelPlan, environment: Environment) -> Iterator[Manifest]:
    """The replicas that answer, and their Services, policies and scaler."""
    common = _common(plan, environment)
    version, kind = workload_kind(plan)
    make = leader_worker_set if kind == "LeaderWorkerSet" else deployment
    together = not plan.zonal and plan.model.replicas.max > 1
    stated = {AVAILABILITY: "single"} if together else {}
    autoscaled = {AUTOSCALED_LABEL: "true"} if plan.model.autoscaled else {}
    yield manifest(
        api_version=version,
        kind=kind,
        spec=make(plan, environment),
        **common | {"annotations": common["annotations"] | stated, "labels": common["labels"] | autoscaled},
    )
    yield manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        spec=server_policy(plan, environment),
        **common,
    )
    yield manifest(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": answering_labels(plan)},
            # A replica that never became ready must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        **common,
    )
    # Clients call the model's own name: its router, if it has one.
    name = f"{plan.name}-decode" if plan.role == "decode" else plan.name
    yield manifest(
        api_version="v1",
        kind="Service",
        spec={
            "type": "ClusterIP",
            "selector": answering_labels(plan),
            "ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
        **common | {"name": name},
    )
    if plan.role == "decode":
        yield from router(plan, environment)
        labels = model_labels(plan, environment.name, component="router")
        yield manifest(
            api_version="networking.k8s.io/v1",
            kind="NetworkPolicy",
            spec=router_policy(plan, environment),
            **common | {"name": f"{plan.model.name}-router", "labels": labels},
        )
    if plan.role != "prefill" and (gateway := environment.gateways.of(plan.model.access.exposure)):
        host = plan.model.access.host or f"{plan.model.name}.{gateway.domain}"
        yield manifest(
            api_version="gateway.networking.k8s.io/v1",
            kind="HTTPRoute",
            spec=route(plan.model.access.exposure, host, service=plan.model.name, port=SERVICE_PORT),
            **common,
        )
    if environment.monitoring.enabled:
        yield _monitor(plan, environment)
    if plan.model.autoscaled:
        yield scaled_object(plan, environment)


def _batch(plan: ModelPlan, environment: Environment) -> Iterator[Manifest]:
    spec, batch = batch_job(plan, environment), plan.model.batch
    labels = model_labels(plan, environment.name, component="batch")
    common = _common(plan, environment) | {"labels": labels}
    named = common | {"name": batch_name(plan, spec)}
    if batch and batch.schedule:
        cron = {
            "schedule": batch.schedule,
            "concurrencyPolicy": "Forbid",  # two runs would write the same file
            "startingDeadlineSeconds": 3600,
            "jobTemplate": {"metadata": {"labels": labels}, "spec": spec},
        }
        yield manifest(api_version="batch/v1", kind="CronJob", spec=cron, **named)
    else:
        yield manifest(api_version="batch/v1", kind="Job", spec=spec, **named)
    selector = {"app.kubernetes.io/name": "batch", "app.kubernetes.io/instance": plan.name}
    yield manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        spec={
            "podSelector": {"matchLabels": selector},
            "policyTypes": ["Ingress", "Egress"],
            "egress": server_policy(plan, environment)["egress"],
        },
        **common,
    )


def _monitor(plan: ModelPlan, environment: Environment) -> Manifest:
    release = plan.interface
    endpoint: dict[str, Any] = {
        "port": PORT_NAME,
        "path": release.metrics_path,
        "interval": f"{plan.model.observability.scrape_interval}s",
        # The label for rules and dashboards: engines label metrics with the name that clients use.
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
    common = _common(plan, environment)
    return manifest(
        api_version="monitoring.coreos.com/v1",
        kind="ServiceMonitor",
        spec={
            "selector": {"matchLabels": selector_labels(plan.name)},
            "namespaceSelector": {"matchNames": [environment.namespace]},
            "endpoints": [endpoint],
        },
        **common | {"labels": common["labels"] | environment.monitoring.labels},
    )
