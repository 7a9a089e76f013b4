"""The pod template of a model server, derived from the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modelyard.engines import ServeSettings, engine, server_args, server_command, server_env
from modelyard.engines.engine import CACHE, HOME
from modelyard.engines.vllm import KV_TRANSFER_PORT
from modelyard.engines.vocabularies import FOLDER
from modelyard.names import DO_NOT_DISRUPT, NODE_POOL_LABEL
from modelyard.object_rules.pods import DRAIN
from modelyard.objects.labels import (
    ROLE,
    cost_labels,
    model_labels,
    pool_labels,
    server_labels,
    weights_annotations,
)
from modelyard.objects.manifest import Manifest
from modelyard.objects.node_taints import tolerations
from modelyard.objects.platform.model_cache import CLAIM, MOUNT_PATH
from modelyard.objects.pods.parts import (
    Container,
    Pod,
    claim,
    config_map,
    empty_dir,
    mount,
    spread,
    variables,
)
from modelyard.objects.pods.ports import PORT_NAME
from modelyard.objects.pods.probes import Drain, probes
from modelyard.objects.serving.compile_cache import compile_cache
from modelyard.objects.serving.settings import engine_port, serve_settings
from modelyard.objects.serving.weights import (
    LOCAL_PATH,
    await_container,
    awaited,
    cached_paths,
    copy_container,
    vocabulary,
)
from modelyard.objects.traffic.router import routing_sidecar
from modelyard.planning import ModelPlan
from modelyard.spec import Environment

# Folders that the engine and its libraries write on first use are emptyDirs: the root file system is
# read-only.
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
    environment: Environment,
    priority_class: str,
    settled: bool,
    account: str,
    otlp_endpoint: str | None = None,
    worker: bool = False,
) -> dict[str, Any]:
    """`spec.template` of a Deployment or of a LeaderWorkerSet's leader; with `worker`, of its workers.

    `settled`: Karpenter may not replace the node while a replica starts; that of a batch, until it ends.
    """
    settings = serve_settings(plan, otlp_endpoint)
    drain = Drain(requests=plan.model.drain, kind=plan.serving.release.drain)
    annotations = {**weights_annotations(plan), DRAIN: f"{drain.kind}:{drain.requests}"}
    if plan.model.batch:
        annotations[DO_NOT_DISRUPT] = "true"
    elif settled:  # while it loads; for ever would keep every new AMI from the node
        annotations[DO_NOT_DISRUPT] = f"{plan.startup.deadline}s"
    cache = compile_cache(plan, settings)
    fields: dict[str, Any] = {
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": drain.grace,
        "nodeSelector": {NODE_POOL_LABEL: plan.placement.pool_name},
        "affinity": _on_instance_types(plan) | (_beside_leader() if worker else {}),
        "tolerations": tolerations(environment, [plan.placement.pool_name]),
    }
    if plan.zonal and not worker:
        fields["topologySpreadConstraints"] = _over_zones(plan, together=plan.serving.nodes == 1)
    pod = Pod(
        account=account,
        containers=[_worker(plan, settings, cache) if worker else _server(plan, settings, drain, cache)],
        volumes=_volumes(plan, settings, shared=bool(cache)),
        first=_init_containers(plan),
        fields=fields,
    )
    labels = {
        **cost_labels(plan, environment.name),
        **model_labels(plan, environment.name, component="worker" if worker else "server"),
    }
    if plan.runner.label:
        labels[plan.runner.label] = plan.name
    if plan.role != "both":
        labels |= {ROLE: plan.role, **pool_labels(plan.model.name)}
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod.spec()}


def _init_containers(plan: ModelPlan) -> list[dict[str, Any]]:
    image = server_image(plan)
    found = []
    if paths := awaited(plan):
        found.append(await_container(paths, image))
    if plan.model.cache_strategy == "nvme":
        found.append(copy_container(cached_paths(plan), image, plan.pod.memory_limit.quantity))
    if plan.role == "decode":
        found.append(routing_sidecar(engine_port(plan)))
    return found


def server_image(plan: ModelPlan) -> str:
    return plan.serving.release.image_for(cpu=plan.serving.on_cpu)


def server_variables(
    plan: ModelPlan, settings: ServeSettings, cache: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Environment of every container that runs the engine; the same in all replicas, except addresses."""
    release = plan.serving.release
    fixed = {
        **_WRITABLE,
        **_OFFLINE,
        **(cache or engine(release.engine).compile_variables(None)),
        **server_env(settings, release),
        **_vocabulary_folder(plan, settings),
        **plan.model.engine.env,
    }
    addresses = dict.fromkeys(engine(release.engine).addresses(settings), "status.podIP")
    key = plan.model.access.api_key
    secrets = {release.api_key_env: key} if key and release.api_key_env else {}
    return variables(fixed, fields=addresses, secrets=secrets)


def _vocabulary_folder(plan: ModelPlan, settings: ServeSettings) -> dict[str, str]:
    """Where a library finds the vocabulary that it would download otherwise: beside the weights."""
    found = vocabulary(plan)
    if found is None or not settings.model_path.startswith("/"):
        return {}
    return {found.variable: f"{settings.model_path}/{FOLDER}"}


def _server(
    plan: ModelPlan, settings: ServeSettings, drain: Drain, cache: Mapping[str, str]
) -> dict[str, Any]:
    release, health = plan.serving.release, plan.interface.health
    port_name = "engine" if plan.role == "decode" else PORT_NAME
    ports = [{"name": port_name, "containerPort": engine_port(plan)}]
    if plan.role != "both":
        ports.append({"name": "kv-transfer", "containerPort": KV_TRANSFER_PORT})
    return _engine(
        plan,
        settings,
        cache,
        command=server_command(settings, release),
        args=server_args(settings, release),
        ports=ports,
        fields={
            **probes(startup_budget=plan.startup.budget, path=health, port=port_name),
            "lifecycle": {"preStop": drain.pre_stop},
        },
    )


def _worker(plan: ModelPlan, settings: ServeSettings, cache: Mapping[str, str]) -> dict[str, Any]:
    """A pod that computes but answers no requests: its leader's probes cover the whole group."""
    served_by = engine(plan.serving.release.engine)
    return _engine(
        plan,
        settings,
        cache,
        command=served_by.worker_command(settings),
        args=served_by.worker_args(settings, plan.serving.release),
        env=served_by.worker_env(settings),
    )


def _engine(
    plan: ModelPlan,
    settings: ServeSettings,
    cache: Mapping[str, str],
    *,
    command: Sequence[str],
    args: Sequence[str],
    env: Mapping[str, str] | None = None,
    ports: Sequence[Manifest] = (),
    fields: Mapping[str, Any] | None = None,
) -> Manifest:
    """The container that runs the engine, in every pod of a replica."""
    resources = server_resources(plan)
    return Container(
        name="server",
        image=server_image(plan),
        command=command,
        args=args,
        env=[*server_variables(plan, settings, cache), *variables(env or {})],
        ports=ports,
        requests=resources["requests"],
        limits=resources["limits"],
        mounts=_mounts(plan, cache),
        fields=fields or {},
    ).manifest()


def server_resources(plan: ModelPlan) -> dict[str, Any]:
    pod, accelerator = plan.pod, plan.serving.accelerator
    devices = {} if accelerator.vendor == "cpu" else {accelerator.resource: str(pod.accelerators)}
    if pod.efa_interfaces:
        devices["vpc.amazonaws.com/efa"] = str(pod.efa_interfaces)
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
    mounts = [mount("home", HOME), mount("shm", "/dev/shm"), mount("tmp", "/tmp")]
    if plan.model.cache_strategy != "nvme" and cached_paths(plan):
        mounts.append(mount(CLAIM, MOUNT_PATH, read_only=True))
    if plan.model.cache_strategy == "nvme":
        mounts.append(mount("local", LOCAL_PATH, read_only=True))
    if cache:
        mounts.append(compile_cache_mount(cache))
    if repository := engine(plan.serving.release.engine).repository:
        mounts.append(mount("repository", repository, read_only=True))
    return mounts


def compile_cache_mount(cache: Mapping[str, str]) -> Manifest:
    """The folder of compiled kernels, beside the weights in the same volume, which may be written."""
    path = cache["VLLM_CACHE_ROOT"]
    return mount(CLAIM, path, folder=f"compile/{path.rpartition('/')[2]}")


def _volumes(plan: ModelPlan, settings: ServeSettings, *, shared: bool) -> list[dict[str, Any]]:
    volumes = [
        empty_dir("home", plan.pod.ephemeral.quantity),
        empty_dir("shm", plan.pod.shm.quantity, medium="Memory"),
        empty_dir("tmp", "2Gi"),
    ]
    if shared or cached_paths(plan):
        volumes.append(claim(CLAIM))
    if plan.model.cache_strategy == "nvme":
        volumes.append(empty_dir("local", (plan.pod.ephemeral * 1.5).quantity))
    if files := engine(plan.serving.release.engine).files(settings):
        items = [{"key": repository_key(path), "path": path} for path in sorted(files)]
        volumes.append(config_map("repository", f"{plan.name}-repository", items))
    return volumes


def repository_key(path: str) -> str:
    """A path among the engine's files as a ConfigMap key."""
    return path.replace("/", ".")


def _on_instance_types(plan: ModelPlan) -> dict[str, Any]:
    """Only instance types that the plan checked: one replica must not launch a node with more accelerators
    than it needs."""
    types = sorted(instance.name for instance in plan.placement.instance_types)
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _beside_leader() -> dict[str, Any]:
    """Workers in the zone of their own leader: EFA and placement do not cross zones, and traffic between
    zones is slow and paid for. The labels are LeaderWorkerSet's; the API server adds those of the pod itself.
    """
    leader = {
        "labelSelector": {"matchLabels": {"leaderworkerset.sigs.k8s.io/worker-index": "0"}},
        "matchLabelKeys": ["leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"],
        "topologyKey": "topology.kubernetes.io/zone",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [leader]}}


def _over_zones(plan: ModelPlan, *, together: bool) -> list[dict[str, Any]]:
    """Spread over zones, but prefer starting in one zone to waiting for capacity in another. A group's leader
    has no pod-template-hash."""
    of_version = {"matchLabelKeys": ["pod-template-hash"]} if together else {}
    return [
        spread(key, server_labels(plan), **of_version)
        for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
    ]
