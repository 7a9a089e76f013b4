"""KServe instead of our own workloads: an LLMInferenceService a model, and everything around it as it was.

Fields and labels are those of serving.kserve.io/v1alpha2 as of August 2026 (pkg/apis/serving/v1alpha2).
KServe selects its pods by `app.kubernetes.io/name`, so ours are told apart by a label of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from modelyard.engines import engine
from modelyard.engines.vllm import DATA_PARALLEL_PORT
from modelyard.findings import Finding
from modelyard.object_rules.pods import INSTANCE, Manifest, is_server, pod_templates
from modelyard.objects.labels import selector_labels
from modelyard.objects.network import ANSWERING, callers_of, router_labels
from modelyard.objects.pods.ports import ENGINE_PORT, PORT, PORT_NAME
from modelyard.objects.pods.security import container_security_context
from modelyard.objects.serving.settings import serve_settings
from modelyard.planning import ModelPlan, Plan
from modelyard.spec import Environment

API_VERSION = "serving.kserve.io/v1alpha2"
SERVER = "modelyard.dev/server"
"""Label by which Services, policies and budgets find the pods that KServe starts."""

# KServe's own, which it selects by or which its controllers write.
_RESERVED = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/component",
    "app.kubernetes.io/part-of",
    "llm-d.ai/role",
)
_SET_NAME = "leaderworkerset.sigs.k8s.io/name"
_FIRST = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
# Where KServe's decode sidecar expects the engine (config/llmisvcconfig/config-llm-decode-template.yaml).
_BEHIND_SIDECAR = 8001


def with_kserve(
    plan: Plan, folders: Mapping[str, list[Manifest]]
) -> tuple[dict[str, list[Manifest]], list[Finding]]:
    """`folders` of the Kubernetes tree with LLMInferenceServices for workloads, and which models it leaves
    out."""
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
    result = {}
    for folder, objects in folders.items():
        if folder not in gone:
            result[folder] = _converted(plans, plan.environment, deepcopy(objects))
    return result, left_out


def _converted(
    plans: Mapping[str, ModelPlan], environment: Environment, objects: list[Manifest]
) -> list[Manifest]:
    servers = {item["metadata"]["name"]: item for item in objects if is_server(item)}
    scalers = {item["metadata"]["name"]: item for item in objects if item["kind"] == "ScaledObject"}
    groups = {name for name, item in servers.items() if item["kind"] == "LeaderWorkerSet"}
    kept = [
        _reselected(item, groups)
        for item in objects
        if not is_server(item)
        and item["kind"] != "ScaledObject"
        and (item["metadata"].get("labels") or {}).get("app.kubernetes.io/component") != "router"
    ]
    for policy in (item for item in kept if item["kind"] == "NetworkPolicy"):
        name = str((policy["metadata"].get("labels") or {}).get(INSTANCE))
        if name in servers and plans[name].role != "both":
            _let_callers_in(policy, plans[name], environment)
        if name not in plans:  # checks and the proxy reach every server
            _rename(policy["spec"], ANSWERING, {"key": SERVER, "operator": "Exists"})
    for name, server in servers.items():
        if plans[name].role != "prefill":
            kept.append(_service(plans, name, server, servers, scalers))
    return kept


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
        # Our own jobs filled the cache; pods wait for it.
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
    """KServe's WorkloadSpec: replicas, parallelism, labels and pods."""
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
        # KServe's rule asks for the length of this name, and an API server refuses what a rule cannot find.
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
    """Our pod with the engine under the name and at the port that KServe's defaults are merged into."""
    server = spec["containers"][0]
    command = engine(plan.serving.release.engine).kserve or ()
    main: Manifest = {**server, "name": "main", "command": server.get("command", list(command))}
    result: dict[str, Any] = {**spec, "containers": [main, *spec["containers"][1:]]}
    if plan.role == "decode":
        # KServe brings its own routing sidecar, into which these are merged: the pod's own port gets its
        # name.
        init = [c for c in spec.get("initContainers", []) if c["name"] != "routing-sidecar"]
        sidecar = {
            "name": "llm-d-routing-sidecar",
            "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
            "securityContext": container_security_context(),
        }
        result["initContainers"] = [*init, sidecar]
        main["args"] = [a.replace(f"--port={ENGINE_PORT}", f"--port={_BEHIND_SIDECAR}") for a in main["args"]]
        main["ports"] = [
            {**p, "containerPort": _BEHIND_SIDECAR} if p["containerPort"] == ENGINE_PORT else p
            for p in main["ports"]
        ]
    result["topologySpreadConstraints"] = [
        {**spread, "labelSelector": {"matchLabels": {SERVER: plan.name}}}
        for spread in spec.get("topologySpreadConstraints", [])
    ]
    if not result["topologySpreadConstraints"]:
        del result["topologySpreadConstraints"]
    return result


def _reselected(item: Manifest, groups: set[str]) -> Manifest:
    """Selectors of pods by our own label; of a group's pods only the first answers."""
    instance = (item["metadata"].get("labels") or {}).get(INSTANCE)
    if instance is None:
        return item
    spec, by_name, ours = item.get("spec", {}), selector_labels(instance), {SERVER: instance}
    answering = ours | (_FIRST if instance in groups else {})
    if item["kind"] == "Service" and spec["selector"] == by_name:
        spec["selector"] = answering
    elif item["kind"] == "PodDisruptionBudget":
        _rename(spec, by_name, answering)
    elif item["kind"] == "NetworkPolicy":
        _rename(spec, by_name, ours)
        _rename(spec, {_SET_NAME: instance}, ours)
    return item


def _let_callers_in(policy: Manifest, plan: ModelPlan, environment: Environment) -> None:
    """Instead of our router, which is not rendered: whoever calls the model, and so KServe's scheduler beside
    it."""
    ours = {"matchLabels": router_labels(plan)}
    for rule in policy["spec"]["ingress"]:
        if any(peer.get("podSelector") == ours for peer in rule["from"]):
            others = [peer for peer in rule["from"] if peer.get("podSelector") != ours]
            rule["from"] = [*others, *(p for p in callers_of(plan, environment) if p not in others)]


def _rename(value: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Replace every mapping below `value` that equals `old`."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if inner == old:
            value[key] = dict(new)
        elif isinstance(inner, dict | list):
            _rename(inner, old, new)
