"""The pod template of a model server, derived from the plan."""

from __future__ import annotations

from typing import Any

from modelyard.engines import ServeSettings, server_args, server_env
from modelyard.k8s.labels import model_annotations, model_labels, selector_labels
from modelyard.k8s.pod_security import container_security_context, pod_security_context
from modelyard.k8s.probes import PORT_NAME, Drain, probes
from modelyard.k8s.weights import CLAIM, MOUNT_PATH, await_container, fetched_sources, weights_path
from modelyard.planning import ModelPlan
from modelyard.planning.requests import images_per_prompt

PORT = 8000
_HOME = "/home/vllm"
_CACHE = f"{_HOME}/.cache"

# Everything that engine and libraries write on first use goes to the pod's own volumes: the root is read-only.
_WRITABLE = {
    "FLASHINFER_WORKSPACE_BASE": _HOME,
    "HF_HOME": f"{_CACHE}/huggingface",
    "HOME": _HOME,
    "TMPDIR": "/tmp",
    "TORCHINDUCTOR_CACHE_DIR": f"{_CACHE}/torchinductor",
    "TRITON_CACHE_DIR": f"{_CACHE}/triton",
    "USER": "vllm",
    "VLLM_CACHE_ROOT": f"{_CACHE}/vllm",
    "XDG_CACHE_HOME": _CACHE,
    "XDG_CONFIG_HOME": f"{_HOME}/.config",
}
_OFFLINE = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}


def serve_settings(plan: ModelPlan) -> ServeSettings:
    """The plan in the engine's terms."""
    model, serving = plan.model, plan.serving
    speculative = model.speculative_decoding
    return ServeSettings(
        model_path=weights_path(model.model.uri, model.model.revision),
        served_names=plan.served_names,
        max_model_len=serving.max_model_len,
        max_num_seqs=serving.max_num_seqs,
        max_num_batched_tokens=serving.max_num_batched_tokens,
        tensor_parallel=serving.tensor_parallel,
        gpu_memory_utilization=model.engine.gpu_memory_utilization,
        dtype=serving.dtype,
        kv_cache_dtype=model.engine.kv_cache_dtype,
        enforce_eager=model.engine.enforce_eager,
        prefix_caching=model.features.prefix_caching,
        tool_parser=plan.parsers.tools if model.features.tools else None,
        reasoning_parser=plan.parsers.reasoning if model.features.reasoning else None,
        images_per_prompt=images_per_prompt(model, serving.arch),
        adapters={adapter.name: weights_path(adapter.uri, adapter.revision) for adapter in model.adapters},
        max_lora_rank=max((adapter.rank for adapter in model.adapters), default=16),
        speculative=None
        if speculative is None
        else {
            "method": speculative.method,
            "num_speculative_tokens": speculative.tokens,
            "prompt_lookup_max": speculative.prompt_lookup_max,
        },
        trust_remote_code=model.model.trust_remote_code is not None,
        load_strategy=plan.load_strategy,
        drain_seconds=model.drain,
        port=PORT,
        extra=model.engine.args,
    )


def server_pod(
    plan: ModelPlan, *, environment: str, priority_class: str, do_not_disrupt: bool
) -> dict[str, Any]:
    """`spec.template` of the server's Deployment."""
    settings = serve_settings(plan)
    drain = Drain(requests=plan.model.drain)
    accelerator = plan.serving.accelerator
    # Only a fetch job marks what is whole: nobody would mark weights that were in the cache before.
    targets = [weights_path(*source) for source in fetched_sources(plan)]
    annotations = model_annotations(plan)
    if do_not_disrupt:
        annotations["karpenter.sh/do-not-disrupt"] = "true"
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,  # or Kubernetes injects NAME_PORT variables that engines may read as their own
        "serviceAccountName": plan.name,
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": drain.grace,
        "securityContext": pod_security_context(),
        "nodeSelector": {"karpenter.sh/nodepool": plan.placement.pool_name},
        "affinity": _on_instance_types(plan),
        "tolerations": [{"key": accelerator.taint, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [_server(plan, settings, drain)],
        "volumes": [
            {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": True}},
            {"name": "home", "emptyDir": {"sizeLimit": plan.pod.ephemeral.quantity}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": plan.pod.shm.quantity}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
        ],
    }
    if targets:
        spec["initContainers"] = [await_container(targets, plan.serving.release.image)]
    if plan.zonal:
        spec["topologySpreadConstraints"] = _over_zones(plan.name)
    labels = model_labels(plan, environment)
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _server(plan: ModelPlan, settings: ServeSettings, drain: Drain) -> dict[str, Any]:
    pod = plan.pod
    resource = plan.serving.accelerator.resource
    fixed = {**_WRITABLE, **_OFFLINE, **server_env(settings, plan.serving.release), **plan.model.engine.env}
    env: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in sorted(fixed.items())]
    if plan.model.access.api_key:
        reference = {"secretKeyRef": {"name": plan.model.access.api_key, "key": "value"}}
        env.append({"name": "VLLM_API_KEY", "valueFrom": reference})
    return {
        "name": "server",
        "image": plan.serving.release.image,
        "args": list(server_args(settings, plan.serving.release)),
        "env": env,
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        "resources": {
            "requests": {
                "cpu": f"{pod.cpu_milli}m" if pod.cpu_milli % 1000 else str(pod.cpu_milli // 1000),
                "memory": pod.memory.quantity,
                "ephemeral-storage": pod.ephemeral.quantity,
                resource: str(pod.accelerators),
            },
            "limits": {
                "memory": pod.memory_limit.quantity,
                "ephemeral-storage": (pod.ephemeral * 1.5).quantity,
                resource: str(pod.accelerators),
            },
        },
        **probes(startup_budget=plan.startup.budget),
        "lifecycle": {"preStop": drain.pre_stop},
        "securityContext": container_security_context(),
        "volumeMounts": [
            {"name": CLAIM, "mountPath": MOUNT_PATH, "readOnly": True},
            {"name": "home", "mountPath": _HOME},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }


def _on_instance_types(plan: ModelPlan) -> dict[str, Any]:
    """Only the types that the plan checked: one replica never buys a node with more accelerators than it needs."""
    types = sorted(instance.name for instance in plan.placement.instance_types)
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _over_zones(model: str) -> list[dict[str, Any]]:
    """Spread, but rather start in one zone than wait for capacity in another."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector_labels(model)},
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]
