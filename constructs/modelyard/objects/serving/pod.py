"""The pod template of a model server, derived from the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelyard.engines import ServeSettings, engine, server_args, server_command, server_env
from modelyard.engines.engine import CACHE, HOME
from modelyard.engines.vllm import KV_TRANSFER_PORT
from modelyard.manifests.pods import DRAIN
from modelyard.objects.labels import (
    ROLE,
    cost_labels,
    model_annotations,
    model_labels,
    pool_labels,
    selector_labels,
)
from modelyard.objects.platform.model_cache import CLAIM, MOUNT_PATH
from modelyard.objects.pods.ports import ENGINE_PORT, PORT, PORT_NAME
from modelyard.objects.pods.probes import Drain, probes
from modelyard.objects.pods.security import container_security_context, pod_security_context
from modelyard.objects.serving.compile_cache import compile_cache
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.serving.weights import (
    LOCAL_PATH,
    await_container,
    copy_container,
    fetched_sources,
    weights_path,
)
from modelyard.objects.traffic.router import routing_sidecar
from modelyard.planning import ModelPlan

# Everything that engine and libraries write on first use goes to the pod's own volumes: the root is read-only.
_WRITABLE = {
    "HF_HOME": f"{CACHE}/huggingface",
    "HOME": HOME,
    "TMPDIR": "/tmp",
    "USER": "vllm",
    "XDG_CACHE_HOME": CACHE,
    "XDG_CONFIG_HOME": f"{HOME}/.config",
}
_OFFLINE = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"}


def server_pod(
    plan: ModelPlan,
    *,
    environment: str,
    priority_class: str,
    do_not_disrupt: bool,
    account: str,
    otlp_endpoint: str | None = None,
    worker: bool = False,
) -> dict[str, Any]:
    """`spec.template` of a Deployment, or of leaders and, with `worker`, workers of a LeaderWorkerSet."""
    settings = serve_settings(plan, otlp_endpoint)
    drain = Drain(requests=plan.model.drain, kind=plan.serving.release.drain)
    annotations = {**model_annotations(plan), DRAIN: f"{drain.kind}:{drain.requests}"}
    if do_not_disrupt:  # a node that loads or serves a model is not consolidated away
        annotations["karpenter.sh/do-not-disrupt"] = "true"
    cache = compile_cache(plan, settings)
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": priority_class,
        "securityContext": pod_security_context(),
        "serviceAccountName": account,
        "terminationGracePeriodSeconds": drain.grace,
        "nodeSelector": {"karpenter.sh/nodepool": plan.placement.pool_name},
        "affinity": _on_instance_types(plan),
        "tolerations": [
            {"key": plan.serving.accelerator.taint, "operator": "Exists", "effect": "NoSchedule"}
        ],
        "containers": [_worker(plan, settings, cache) if worker else _server(plan, settings, drain, cache)],
        "volumes": _volumes(plan, settings, shared=bool(cache)),
    }
    if first := _init_containers(plan):
        spec["initContainers"] = first
    if plan.zonal and not worker:
        spec["topologySpreadConstraints"] = _over_zones(plan.name, together=plan.serving.nodes == 1)
    labels = {
        **cost_labels(plan, environment),
        **model_labels(plan, environment, component="worker" if worker else "server"),
    }
    if plan.role != "both":
        labels |= {ROLE: plan.role, **pool_labels(plan.model.name)}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _init_containers(plan: ModelPlan) -> list[dict[str, Any]]:
    image = server_image(plan)
    found = []
    if plan.model.cache_strategy != "s3-stream" and (sources := fetched_sources(plan)):
        found.append(await_container([source.target for source in sources], image))
    if plan.model.cache_strategy == "nvme":
        own = plan.model.model
        targets = dict.fromkeys(
            [weights_path(own.uri, own.revision), *(s.target for s in fetched_sources(plan))]
        )
        found.append(copy_container(list(targets), image, plan.pod.memory_limit.quantity))
    if plan.role == "decode":
        found.append(routing_sidecar())
    return found


def server_image(plan: ModelPlan) -> str:
    return plan.serving.release.image_for(cpu=plan.serving.on_cpu)


def server_variables(
    plan: ModelPlan, settings: ServeSettings, cache: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Environment of every container that runs the engine; values are the same in all replicas, but for addresses."""
    release = plan.serving.release
    fixed = {
        **_WRITABLE,
        **_OFFLINE,
        **(cache or engine(release.engine).compile_variables(None)),
        **server_env(settings, release),
        **plan.model.engine.env,
    }
    env: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in sorted(fixed.items())]
    addresses = engine(release.engine).addresses(settings)
    env += [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} for name in addresses]
    if plan.model.access.api_key and release.api_key_env:
        reference = {"secretKeyRef": {"name": plan.model.access.api_key, "key": "value"}}
        env.append({"name": release.api_key_env, "valueFrom": reference})
    return env


def _server(
    plan: ModelPlan, settings: ServeSettings, drain: Drain, cache: Mapping[str, str]
) -> dict[str, Any]:
    release = plan.serving.release
    port_name = "engine" if plan.role == "decode" else PORT_NAME
    ports = [{"name": port_name, "containerPort": ENGINE_PORT if plan.role == "decode" else PORT}]
    if plan.role != "both":
        ports.append({"name": "kv-transfer", "containerPort": KV_TRANSFER_PORT})
    server = {
        **_engine(plan, settings, cache),
        "name": "server",
        "args": list(server_args(settings, release)),
        "ports": ports,
        **probes(startup_budget=plan.startup.budget, path=release.health, port=port_name),
        "lifecycle": {"preStop": drain.pre_stop},
    }
    if command := server_command(settings, release):
        server["command"] = list(command)
    return server


def _worker(plan: ModelPlan, settings: ServeSettings, cache: Mapping[str, str]) -> dict[str, Any]:
    """A pod that computes and answers nobody: its leader's probes stand for the whole group."""
    release, served_by = plan.serving.release, engine(plan.serving.release.engine)
    worker = {
        **_engine(plan, settings, cache),
        "name": "server",
        "args": list(served_by.worker_args(settings, release)),
    }
    if command := served_by.worker_command(settings):
        worker["command"] = list(command)
    own = served_by.worker_env(settings)
    worker["env"] = [*worker["env"], *({"name": name, "value": value} for name, value in own.items())]
    return worker


def _engine(plan: ModelPlan, settings: ServeSettings, cache: Mapping[str, str]) -> dict[str, Any]:
    return {
        "image": server_image(plan),
        "env": server_variables(plan, settings, cache),
        "resources": server_resources(plan),
        "securityContext": container_security_context(),
        "volumeMounts": _mounts(plan, cache),
    }


def server_resources(plan: ModelPlan) -> dict[str, Any]:
    pod, accelerator = plan.pod, plan.serving.accelerator
    devices = {} if accelerator.vendor == "cpu" else {accelerator.resource: str(pod.accelerators)}
    if pod.efa_interfaces:
        devices |= {
            "vpc.amazonaws.com/efa": str(pod.efa_interfaces),
            "hugepages-2Mi": pod.hugepages.quantity,
        }
    return {
        "requests": {
            "cpu": f"{pod.cpu_milli}m" if pod.cpu_milli % 1000 else str(pod.cpu_milli // 1000),
            "memory": pod.memory.quantity,
            "ephemeral-storage": pod.ephemeral.quantity,
            **devices,
        },
        "limits": {
            "memory": pod.memory_limit.quantity,
            "ephemeral-storage": (pod.ephemeral * 1.5).quantity,
            **devices,
        },
    }


def _mounts(plan: ModelPlan, cache: Mapping[str, str]) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "home", "mountPath": HOME},
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    if plan.model.cache_strategy == "efs":
        mounts.append({"name": CLAIM, "mountPath": MOUNT_PATH, "readOnly": True})
    if plan.model.cache_strategy == "nvme":
        mounts.append({"name": "local", "mountPath": LOCAL_PATH, "readOnly": True})
    if cache:
        mounts.append(compile_cache_mount(cache))
    if repository := engine(plan.serving.release.engine).repository:
        mounts.append({"name": "repository", "mountPath": repository, "readOnly": True})
    if plan.pod.hugepages.in_bytes:
        mounts.append({"name": "hugepages", "mountPath": "/dev/hugepages"})
    return mounts


def compile_cache_mount(cache: Mapping[str, str]) -> dict[str, Any]:
    path = cache["VLLM_CACHE_ROOT"]
    return {"name": "compile-cache", "mountPath": path, "subPath": f"compile/{path.rpartition('/')[2]}"}


def _volumes(plan: ModelPlan, settings: ServeSettings, *, shared: bool) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "home", "emptyDir": {"sizeLimit": plan.pod.ephemeral.quantity}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": plan.pod.shm.quantity}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
    ]
    if plan.model.cache_strategy != "s3-stream":
        volumes.append({"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM, "readOnly": True}})
    if shared:
        volumes.append({"name": "compile-cache", "persistentVolumeClaim": {"claimName": CLAIM}})
    if plan.model.cache_strategy == "nvme":
        volumes.append({"name": "local", "emptyDir": {"sizeLimit": (plan.pod.ephemeral * 1.5).quantity}})
    if files := engine(plan.serving.release.engine).files(settings):
        items = [{"key": repository_key(path), "path": path} for path in sorted(files)]
        volumes.append(
            {"name": "repository", "configMap": {"name": f"{plan.name}-repository", "items": items}}
        )
    if plan.pod.hugepages.in_bytes:
        volumes.append({"name": "hugepages", "emptyDir": {"medium": "HugePages-2Mi"}})
    return volumes


def repository_key(path: str) -> str:
    """A path of the engine's files as a key of a ConfigMap."""
    return path.replace("/", ".")


def _on_instance_types(plan: ModelPlan) -> dict[str, Any]:
    """Only the types that the plan checked: one replica never buys a node with more accelerators than it needs."""
    types = sorted(instance.name for instance in plan.placement.instance_types)
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _over_zones(model: str, *, together: bool) -> list[dict[str, Any]]:
    """Spread, but rather start in one zone than wait for capacity in another. A group's leader has no template hash."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector_labels(model)},
            **({"matchLabelKeys": ["pod-template-hash"]} if together else {}),
        }
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]
