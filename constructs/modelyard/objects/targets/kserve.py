"""KServe instead of our own workloads: one LLMInferenceService per model, and the objects that select its
pods.

Fields and labels are from serving.kserve.io/v1alpha2 as of August 2026 (pkg/apis/serving/v1alpha2). KServe
selects its pods by `app.kubernetes.io/name`, so our selectors use our own label.
"""

from __future__ import annotations

from collections.abc import Mapping

from modelyard.engines import engine
from modelyard.engines.vllm import DATA_PARALLEL_PORT
from modelyard.findings import Finding
from modelyard.object_rules.pods import Manifest, at, is_server, pod_templates
from modelyard.objects.pods.ports import PORT, PORT_NAME
from modelyard.objects.pods.security import container_security_context
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.traffic.router import SIDECAR
from modelyard.planning import ModelPlan, Plan, Runner

API_VERSION = "serving.kserve.io/v1alpha2"
SERVER = "modelyard.dev/server"
"""Label by which Services, policies and budgets select the pods that KServe starts."""

# Labels that KServe selects by or its controllers write.
_RESERVED = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
    "app.kubernetes.io/part-of",
    "llm-d.ai/role",
)

# KServe's scheduler calls replicas directly; its decode sidecar expects the engine at this port
# (config/llmisvcconfig/config-llm-decode-template.yaml).
KSERVE = Runner(label=SERVER, routed=False, engine_port=8001)


def with_kserve(
    plan: Plan, folders: Mapping[str, list[Manifest]]
) -> tuple[dict[str, list[Manifest]], list[Finding]]:
    """`folders` of a plan for KServe, with LLMInferenceServices instead of workloads, and findings for models
    left out."""
    plans = {model.name: model for model in plan.models}
    left_out = [
        Finding(
            "TARGET001",
            f"{model.serving.release.engine} serves it, and LLMInferenceService starts vLLM",
            "use engine vllm, or render it for Kubernetes",
            subject=model.name,
            field=("engine",),
        )
        for model in plan.models
        if engine(model.serving.release.engine).kserve is None
    ]
    gone = {f"models/{finding.subject}" for finding in left_out}
    return {
        folder: _with_services(plans, objects) for folder, objects in folders.items() if folder not in gone
    }, left_out


def _with_services(plans: Mapping[str, ModelPlan], objects: list[Manifest]) -> list[Manifest]:
    """The objects that KServe does not create, and one service per model that answers requests."""
    servers = {item["metadata"]["name"]: item for item in objects if is_server(item)}
    scalers = {item["metadata"]["name"]: item for item in objects if item["kind"] == "ScaledObject"}
    kept = [
        item
        for item in objects
        if not is_server(item)
        and item["kind"] != "ScaledObject"
        and (at(item, "metadata.labels") or {}).get("app.kubernetes.io/component") != "router"
    ]
    answering = [name for name in servers if plans[name].role != "prefill"]
    return [*kept, *(_service(plans, name, servers[name], servers, scalers) for name in answering)]


def _service(
    plans: Mapping[str, ModelPlan],
    name: str,
    server: Manifest,
    servers: Mapping[str, Manifest],
    scalers: Mapping[str, Manifest],
) -> Manifest:
    plan = plans[name]
    settings = serve_settings(plan)
    spec: Manifest = {
        "model": {"uri": plan.model.model.uri, "name": settings.served_names[0]},
        # Our own Jobs fill the cache; pods wait for it.
        "storageInitializer": {"enabled": False},
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
        **_workload(plan, server, scalers.get(name)),
    }
    prefill = f"{name}-prefill"
    if prefill in servers:
        spec["prefill"] = _workload(plans[prefill], servers[prefill], scalers.get(prefill))
    metadata = server["metadata"]
    return {"apiVersion": API_VERSION, "kind": "LLMInferenceService", "metadata": metadata, "spec": spec}


def _workload(plan: ModelPlan, server: Manifest, scaler: Manifest | None) -> Manifest:
    """KServe's WorkloadSpec: replicas, parallelism, labels and pod templates."""
    first, *others = pod_templates(server)
    labels = {k: v for k, v in first["metadata"]["labels"].items() if k not in _RESERVED}
    rolling = (
        server["spec"].get("strategy", {}).get("rollingUpdate")
        or server["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    )
    workload: Manifest = {
        "parallelism": _parallelism(plan),
        "labels": {**labels, SERVER: plan.name},
        "annotations": first["metadata"].get("annotations", {}),
        "rolloutStrategy": rolling,
        "template": _pod(plan, first["spec"]),
    }
    if others:
        workload["worker"] = _pod(plan, others[0]["spec"])
    if scaler is None:
        workload["replicas"] = server["spec"].get("replicas", 1)
    else:
        wanted = scaler["spec"]
        keda = {
            k: wanted[k] for k in ("pollingInterval", "cooldownPeriod", "fallback", "advanced", "triggers")
        }
        # KServe's CEL rule reads the length of this name, and the API server rejects an object without the
        # field.
        autoscaler = {**wanted["advanced"]["horizontalPodAutoscalerConfig"], "name": ""}
        keda["advanced"] = {**wanted["advanced"], "horizontalPodAutoscalerConfig": autoscaler}
        workload["scaling"] = {
            "minReplicas": max(1, wanted["minReplicaCount"]),
            "maxReplicas": wanted["maxReplicaCount"],
            "keda": keda,
        }
        if wanted["minReplicaCount"] == 0:
            keda["idleReplicaCount"] = 0
    return workload


def _parallelism(plan: ModelPlan) -> Manifest:
    ranks = serve_settings(plan).ranks
    found: Manifest = {"tensor": ranks.tensor}
    if ranks.pipeline > 1:
        found["pipeline"] = ranks.pipeline
    if ranks.data > 1:
        found |= {"data": ranks.data, "dataLocal": ranks.data_per_node, "dataRPCPort": DATA_PARALLEL_PORT}
    if ranks.expert:
        found["expert"] = True
    return found


def _pod(plan: ModelPlan, spec: Manifest) -> Manifest:
    """The pod with the engine under the container name into which KServe merges its defaults."""
    server, *others = spec["containers"]
    command = engine(plan.serving.release.engine).kserve or ()
    main = {**server, "name": "main", "command": server.get("command", list(command))}
    pod = {**spec, "containers": [main, *others]}
    if plan.role == "decode":
        # KServe brings its own routing sidecar and merges this into it: it gets the pod's port name.
        sidecar = {
            "name": "llm-d-routing-sidecar",
            "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
            "securityContext": container_security_context(),
        }
        first = [c for c in spec.get("initContainers", []) if c["name"] != SIDECAR]
        pod["initContainers"] = [*first, sidecar]
    return pod
