"""Disaggregated serving: an InferencePool, and a router that picks a prefill and a decode replica per
request.

Envoy asks the endpoint picker (llm-d's, of Gateway API Inference Extension) for the replicas of a request.
The decode replica's sidecar sends the prompt to the picked prefill replica, and the rest to its own engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from modelyard.object_rules.pods import DRAIN
from modelyard.objects.labels import model_annotations, model_labels, pool_labels, weights_annotations
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.pods.digest import digest
from modelyard.objects.pods.parts import Container, Pod, config_map, empty_dir, mount, spread
from modelyard.objects.pods.ports import PICKER_METRICS_PORT, PORT, PORT_NAME, PROXY_PORT
from modelyard.objects.traffic.envoy import READY_PORT, envoy_config
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

# Releases of 2026: llm-d/llm-d-router v0.9.0 (deploy/, config/charts/), envoyproxy/envoy v1.33.2, pinned by
# its chart.
_PICKER = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.9.0"
_SIDECAR = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.9.0"
_ENVOY = "docker.io/envoyproxy/envoy:distroless-v1.33.2"

SIDECAR = "routing-sidecar"
"""Name of the container in front of a decoding engine."""

_EXTENSION_PORT = 9002
_HEALTH_PORT = 9003
_EXTENSION_SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"


def router_name(plan: ModelPlan) -> str:
    return f"{plan.model.name}-router"


def routing_sidecar(engine_port: int) -> dict[str, Any]:
    """A native sidecar: it starts before the engine at `engine_port` and stops after it."""
    return Container(
        name=SIDECAR,
        image=_SIDECAR,
        args=[
            f"--port={PORT}",
            f"--vllm-port={engine_port}",
            "--kv-connector=nixlv2",
            "--secure-proxy=false",
        ],
        ports=[{"name": PORT_NAME, "containerPort": PORT}],
        requests={"cpu": "250m", "memory": "256Mi"},
        limits={"memory": "512Mi"},
        fields={"restartPolicy": "Always"},
    ).manifest()


def router(plan: ModelPlan, environment: Environment) -> Iterator[Manifest]:
    """InferencePool, endpoint picker and proxy of a disaggregated model."""
    name, model = router_name(plan), plan.model.name
    assert plan.model.disaggregation is not None
    labels = model_labels(plan, environment.name, component="router")
    selector = {"app.kubernetes.io/name": "router", "app.kubernetes.io/instance": model}
    common: dict[str, Any] = {
        "namespace": environment.namespace,
        "labels": labels,
        "annotations": model_annotations(plan),
    }
    files = {
        "epp.yaml": json.dumps(_picker_config(plan.model.disaggregation.threshold), indent=1),
        "envoy.yaml": json.dumps(envoy_config(_EXTENSION_PORT), indent=1),
    }
    yield manifest(
        api_version="inference.networking.k8s.io/v1",
        kind="InferencePool",
        name=model,
        spec={
            "selector": {"matchLabels": pool_labels(model)},
            "targetPorts": [{"number": PORT}],
            "endpointPickerRef": {"name": name, "kind": "Service", "port": {"number": _EXTENSION_PORT}},
        },
        **common,
    )
    yield manifest(api_version="v1", kind="ConfigMap", name=name, data=files, **common)
    yield manifest(api_version="v1", kind="ServiceAccount", name=name, **common)
    yield from _access_to_pods(name, environment.namespace, common)
    yield manifest(
        api_version="apps/v1",
        kind="Deployment",
        name=name,
        spec={
            "replicas": 2,
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 5,
            "template": _router_pod(plan, name, labels, environment, digest(files)),
        },
        **common,
    )
    http = {"name": PORT_NAME, "port": 80, "targetPort": PORT_NAME, "protocol": "TCP"}
    grpc = {
        "name": "grpc",
        "port": _EXTENSION_PORT,
        "targetPort": "grpc",
        "protocol": "TCP",
        "appProtocol": "http2",
    }
    for service, port in ((model, http), (name, grpc)):
        yield manifest(
            api_version="v1",
            kind="Service",
            name=service,
            spec={"type": "ClusterIP", "selector": selector, "ports": [port]},
            **common,
        )
    yield manifest(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        name=name,
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        **common,
    )


def _access_to_pods(name: str, namespace: str, common: dict[str, Any]) -> Iterator[Manifest]:
    """The picker reads the pool and its pods.

    No leader election: the proxy beside each picker asks its own, and one that does not lead is never live.
    """
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": read},
        {"apiGroups": ["inference.networking.k8s.io"], "resources": ["inferencepools"], "verbs": read},
        {
            "apiGroups": ["llm-d.ai"],
            "resources": ["inferenceobjectives", "inferencemodelrewrites"],
            "verbs": read,
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    ]
    api = "rbac.authorization.k8s.io/v1"
    yield manifest(api_version=api, kind="Role", name=name, rules=rules, **common)
    yield manifest(
        api_version=api,
        kind="RoleBinding",
        name=name,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        **common,
    )


def _picker_config(threshold: int) -> dict[str, Any]:
    """Prefer replicas that have a prompt's prefix cached, then short queues; prompts with fewer than
    `threshold` uncached tokens go straight to a decode replica."""
    scorers = [
        {"pluginRef": "max-score-picker"},
        {"pluginRef": "prefix-cache-scorer", "weight": 2},
        {"pluginRef": "queue-scorer", "weight": 1},
    ]
    return {
        "apiVersion": "llm-d.ai/v1alpha1",
        "kind": "EndpointPickerConfig",
        "plugins": [
            {
                "type": "approx-prefix-cache-producer",
                "parameters": {"maxPrefixBlocksToMatch": 256, "lruCapacityPerServer": 31250},
            },
            *(
                {"type": kind}
                for kind in (
                    "prefix-cache-scorer",
                    "queue-scorer",
                    "prefill-filter",
                    "decode-filter",
                    "max-score-picker",
                )
            ),
            {"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": threshold}},
            {
                "type": "disagg-profile-handler",
                "parameters": {"deciders": {"prefill": "prefix-based-pd-decider"}},
            },
        ],
        "schedulingProfiles": [
            {"name": role, "plugins": [{"pluginRef": f"{role}-filter"}, *scorers]}
            for role in ("prefill", "decode")
        ],
    }


def _router_pod(
    plan: ModelPlan, name: str, labels: dict[str, str], environment: Environment, config: str
) -> dict[str, Any]:
    probe = {"grpc": {"port": _HEALTH_PORT, "service": _EXTENSION_SERVICE}}
    requests, limits = {"cpu": "500m", "memory": "512Mi"}, {"memory": "2Gi"}
    config_mount = mount("config", "/config", read_only=True)
    picker = Container(
        name="endpoint-picker",
        image=_PICKER,
        args=[
            f"--pool-name={plan.model.name}",
            f"--pool-namespace={environment.namespace}",
            "--pool-group=inference.networking.k8s.io",
            f"--grpc-port={_EXTENSION_PORT}",
            f"--grpc-health-port={_HEALTH_PORT}",
            "--config-file=/config/epp.yaml",
            "--metrics-endpoint-auth=false",
            "--secure-serving=false",
            "--zap-encoder=json",
        ],
        ports=[
            {"name": "grpc", "containerPort": _EXTENSION_PORT},
            {"name": "metrics", "containerPort": PICKER_METRICS_PORT},
        ],
        requests=requests,
        limits=limits,
        mounts=[config_mount],
        fields=_probes(probe),
    )
    proxy = Container(
        name="proxy",
        image=_ENVOY,
        args=[
            "--config-path",
            "/config/envoy.yaml",
            "--log-level",
            "warn",
            "--drain-time-s",
            str(plan.model.drain),
        ],
        ports=[{"name": PORT_NAME, "containerPort": PROXY_PORT}],
        requests=requests,
        limits=limits,
        mounts=[config_mount, mount("tmp", "/tmp")],
        fields={
            **_probes({"httpGet": {"path": "/ready", "port": READY_PORT}}),
            # Streams pass through the proxy: it stays until the engines' drain is over.
            "lifecycle": {"preStop": {"sleep": {"seconds": plan.model.drain + 15}}},
        },
    )
    selector = {"app.kubernetes.io/name": "router", "app.kubernetes.io/instance": plan.model.name}
    pod = Pod(
        account=name,
        containers=[proxy.manifest(), picker.manifest()],
        volumes=[config_map("config", name), empty_dir("tmp", "1Gi")],
        token=True,  # the picker watches the pool's pods
        fields={
            "terminationGracePeriodSeconds": plan.model.drain + 45,
            "topologySpreadConstraints": [spread("topology.kubernetes.io/zone", selector)],
        },
    )
    annotations = {
        **weights_annotations(plan),
        "modelyard.dev/config": config,  # another configuration is another pod
        DRAIN: f"wait:{plan.model.drain}",
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod.spec()}


def _probes(probe: dict[str, Any]) -> dict[str, Any]:
    return {
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": 60},
        "readinessProbe": {**probe, "periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**probe, "periodSeconds": 15, "failureThreshold": 10},
    }
