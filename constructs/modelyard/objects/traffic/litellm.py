"""LiteLLM in front of all models: clients use one address, and the model names of the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from modelyard.object_rules.rules import DRAIN
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import (
    LITELLM,
    gateway_pods,
    name_resolution,
    pods_of,
    to_models,
)
from modelyard.objects.pods.digest import digest
from modelyard.objects.pods.parts import Container, Pod, config_map, empty_dir, mount, spread, variables
from modelyard.objects.pods.ports import PORT_NAME
from modelyard.objects.traffic.gateways import route
from modelyard.planning import OURS, ModelPlan, Runner
from modelyard.spec import Environment
from modelyard.spec.environment import LiteLlm

NAME = "litellm"
_IMAGE = "ghcr.io/berriai/litellm:v1.106.2"
_PORT = 4000
_DRAIN = 120

# LiteLLM's mode per model task.
_MODES = {"generate": "chat", "embed": "embedding", "rerank": "rerank"}


def proxy_config(plans: Sequence[ModelPlan], namespace: str) -> dict[str, Any]:
    """`config.yaml` of the proxy: every model under its names and those of its adapters, at its Service,
    with its own key if it has one."""
    return {
        "model_list": [
            _entry(plan, name, namespace) for plan in plans if _answers(plan) for name in plan.gateway_names
        ],
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY", "disable_spend_logs": True},
        "litellm_settings": {"callbacks": ["prometheus"], "drop_params": True, "request_timeout": 3600},
        # The Service handles a missing replica; a started request is not sent again.
        "router_settings": {"num_retries": 2, "allowed_fails": 10, "cooldown_time": 5},
    }


def _answers(plan: ModelPlan) -> bool:
    return plan.role != "prefill" and plan.model.batch is None


def _entry(plan: ModelPlan, name: str, namespace: str) -> dict[str, Any]:
    rerank = plan.model.task == "rerank"
    address = f"http://{plan.model.name}.{namespace}"
    key = plan.model.access.api_key
    # `servedNames` replace the model's own name at the server.
    known = (*plan.served_names, *(adapter.name for adapter in plan.model.adapters))
    return {
        "model_name": name,
        "litellm_params": {
            # The model name in the request to the server is the part after the first slash.
            "model": f"{'hosted_vllm' if rerank else 'openai'}/{name if name in known else known[0]}",
            "api_base": address if rerank else f"{address}/v1",
            "api_key": f"os.environ/{key_variable(key)}" if key else "none",
        },
        "model_info": {
            "mode": _MODES[plan.model.task],
            "max_input_tokens": plan.serving.max_model_len,
            "supports_function_calling": plan.model.features.tools,
        },
    }


def key_variable(secret: str) -> str:
    """Environment variable with the key of a secret."""
    return f"KEY_{secret.upper().replace('-', '_')}"


def litellm_proxy(
    plans: Sequence[ModelPlan],
    environment: Environment,
    settings: LiteLlm,
    runner: Runner = OURS,
) -> Iterator[Manifest]:
    """Deployment, Service, policy and configuration of the proxy in the models' namespace; `runner` starts
    the servers that it calls."""
    labels = {**platform_labels("gateway"), **LITELLM}
    common: dict[str, Any] = {"name": NAME, "namespace": environment.namespace, "labels": labels}
    config = json.dumps(proxy_config(plans, environment.namespace), indent=1)
    yield manifest(api_version="v1", kind="ConfigMap", data={"config.yaml": config}, **common)
    yield manifest(
        api_version="v1",
        kind="ServiceAccount",
        automountServiceAccountToken=False,
        **common,
    )
    keys = sorted({p.model.access.api_key for p in plans if _answers(p) and p.model.access.api_key})
    yield manifest(
        api_version="apps/v1",
        kind="Deployment",
        spec={
            "replicas": settings.replicas,
            "selector": {"matchLabels": LITELLM},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": 900,
            "revisionHistoryLimit": 5,
            "template": _pod(labels, digest({"config": config}), settings.master_key, keys),
        },
        **common,
    )
    yield manifest(
        api_version="v1",
        kind="Service",
        spec={
            "type": "ClusterIP",
            "selector": LITELLM,
            "ports": [{"name": PORT_NAME, "port": 80, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
        **common,
    )
    yield manifest(
        api_version="policy/v1",
        kind="PodDisruptionBudget",
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": LITELLM},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        **common,
    )
    yield manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        spec=_policy(environment, settings, runner),
        **common,
    )
    if gateway := environment.gateways.of(settings.exposure):
        yield manifest(
            api_version="gateway.networking.k8s.io/v1",
            kind="HTTPRoute",
            spec=route(settings.exposure, f"llm.{gateway.domain}", service=NAME, port=80),
            **common,
        )
    if environment.monitoring.enabled:
        yield _monitor(environment, common, settings.master_key)


def _monitor(environment: Environment, common: dict[str, Any], master_key: str) -> Manifest:
    return manifest(
        api_version="monitoring.coreos.com/v1",
        kind="ServiceMonitor",
        **{**common, "labels": {**common["labels"], **environment.monitoring.labels}},
        spec={
            "selector": {"matchLabels": LITELLM},
            "namespaceSelector": {"matchNames": [environment.namespace]},
            "endpoints": [
                {
                    "port": PORT_NAME,
                    "path": "/metrics/",
                    "interval": "15s",
                    "authorization": {
                        "type": "Bearer",
                        "credentials": {"name": master_key, "key": "value"},
                    },
                }
            ],
        },
    )


def _pod(labels: dict[str, str], config: str, master_key: str, keys: Sequence[str]) -> dict[str, Any]:
    secrets = {"LITELLM_MASTER_KEY": master_key, **{key_variable(key): key for key in keys}}
    fixed = {
        "HOME": "/tmp",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it fetches its price list from the internet
        "DISABLE_ADMIN_UI": "True",
    }
    live = {"httpGet": {"path": "/health/liveliness", "port": PORT_NAME}}
    ready = {"httpGet": {"path": "/health/readiness", "port": PORT_NAME}}
    proxy = Container(
        name=NAME,
        image=_IMAGE,
        args=["--config", "/config/config.yaml", "--port", str(_PORT)],
        env=variables(fixed, secrets=dict(sorted(secrets.items()))),
        ports=[{"name": PORT_NAME, "containerPort": _PORT}],
        requests={"cpu": "500m", "memory": "1Gi"},
        limits={"memory": "2Gi"},
        mounts=[mount("config", "/config", read_only=True), mount("tmp", "/tmp")],
        fields={
            "startupProbe": {**live, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 60},
            "readinessProbe": {**ready, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3},
            "livenessProbe": {**live, "periodSeconds": 15, "timeoutSeconds": 15, "failureThreshold": 10},
            "lifecycle": {"preStop": {"sleep": {"seconds": _DRAIN + 15}}},
        },
    )
    pod = Pod(
        account=NAME,
        containers=[proxy.manifest()],
        volumes=[config_map("config", NAME), empty_dir("tmp", "1Gi")],
        fields={
            "terminationGracePeriodSeconds": _DRAIN + 45,
            "topologySpreadConstraints": [spread("topology.kubernetes.io/zone", LITELLM)],
        },
    )
    annotations = {"modelyard.dev/config": config, DRAIN: f"wait:{_DRAIN}"}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod.spec()}


def _policy(environment: Environment, settings: LiteLlm, runner: Runner) -> dict[str, Any]:
    """Ingress from clients, egress to models, nothing else: the proxy holds every model's key."""
    clients = [pods_of(client.namespace, client.pod_labels) for client in settings.allow_from]
    monitoring = environment.monitoring
    callers = [
        *(clients or [pods_of(environment.namespace, {})]),
        *([] if settings.exposure == "cluster" else [gateway_pods(settings.exposure)]),
        *([pods_of(monitoring.namespace, {})] if monitoring.enabled else []),
    ]
    port = [{"port": _PORT, "protocol": "TCP"}]
    return {
        "podSelector": {"matchLabels": LITELLM},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": callers, "ports": port}],
        "egress": [name_resolution(environment), to_models(runner)],
    }
