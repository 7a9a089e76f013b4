"""Accessors for a rendered workload: pods, containers, ports, flags, variables and volumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

WORKLOADS = ("Deployment", "LeaderWorkerSet", "Job", "CronJob", "StatefulSet", "DaemonSet")
SERVING = ("Deployment", "LeaderWorkerSet")
DRAIN = "modelyard.dev/drain"
"""Annotation of a pod: its drain mode (flag, signal or wait) and seconds, such as `wait:60`."""

AVAILABILITY = "modelyard.dev/availability"
"""Annotation of a workload whose replicas may share a node: `single`, as in its model file."""

GROUP = "leaderworkerset.sigs.k8s.io/name"
"""Label with the LeaderWorkerSet's name, which its controller sets on each pod."""
FIRST_OF_A_GROUP = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
"""Label that the controller sets on the pods that answer requests, one per group."""

NAME, INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"


def at(item: Mapping[str, Any], path: str) -> Any:
    """The value at a `path` such as `spec.selector`, or None."""
    found: Any = item
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def named(item: Mapping[str, Any]) -> tuple[str | None, str]:
    """Namespace and name."""
    return at(item, "metadata.namespace"), str(at(item, "metadata.name"))


def pod_templates(item: Manifest) -> list[Manifest]:
    """Pod templates of a workload, first the template of the pods that answer requests."""
    spec = item["spec"]
    if item["kind"] == "LeaderWorkerSet":
        group = spec["leaderWorkerTemplate"]
        return [group["leaderTemplate"], group["workerTemplate"]]
    return [(spec["jobTemplate"]["spec"] if item["kind"] == "CronJob" else spec)["template"]]


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether a non-empty label selector matches `labels`."""
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def pod_labels(workload: Manifest) -> dict[str, str]:
    """Labels of the pods that answer requests, including those that LeaderWorkerSet's controller adds: the
    set's name and the index in the group."""
    labels: dict[str, str] = pod_templates(workload)[0]["metadata"].get("labels") or {}
    if workload["kind"] == "LeaderWorkerSet":
        labels = {**labels, GROUP: workload["metadata"]["name"], **FIRST_OF_A_GROUP}
    return labels


def containers(spec: Manifest) -> list[Manifest]:
    """Init containers (with sidecars) and containers of a pod's `spec`."""
    return [*(spec.get("initContainers") or []), *spec["containers"]]


def ports(workload: Manifest) -> set[str | int]:
    """Names and numbers of the ports of pods that answer requests."""
    found = [p for c in containers(pod_templates(workload)[0]["spec"]) for p in c.get("ports") or []]
    return {port[key] for port in found for key in ("name", "containerPort") if key in port}


def is_server(workload: Manifest) -> bool:
    """Whether it runs an engine that answers requests for a model: not a Job, not a router."""
    labels = at(workload, "metadata.labels") or {}
    return workload["kind"] in SERVING and labels.get(NAME) == "model-server"


def runs_engine(workload: Manifest) -> bool:
    """Whether its first container is an engine with a model: a server, or a batch of requests."""
    labels = at(workload, "metadata.labels") or {}
    return is_server(workload) or (workload["kind"] in ("Job", "CronJob") and labels.get(NAME) == "batch")


def flags(container: Manifest) -> dict[str, str]:
    """Flags of the command line without dashes; a switch has the value "", several values are joined by
    blanks."""
    found: dict[str, str] = {}
    name = ""
    for word in map(str, container.get("args") or []):
        if word.startswith("--"):
            name, _, value = word.removeprefix("--").partition("=")
            found[name] = value
        elif name:
            found[name] = f"{found[name]} {word}".strip()
    return found


def variables(container: Manifest) -> dict[str, Any]:
    """Environment of a container: the value, or its source."""
    return {str(v.get("name")): v.get("value", v.get("valueFrom")) for v in container.get("env") or []}


def mount_of(container: Manifest, path: str) -> Manifest | None:
    """The deepest volume mount that contains `path`."""
    found = [
        m
        for m in container.get("volumeMounts") or []
        if f"{path}/".startswith(f"{str(m.get('mountPath')).rstrip('/')}/")
    ]
    return max(found, key=lambda mount: len(mount["mountPath"]), default=None)


def volume_of(spec: Manifest, mount: Manifest | None) -> Manifest | None:
    """The volume of `mount`."""
    if mount is None:
        return None
    return next((v for v in spec.get("volumes") or [] if v.get("name") == mount.get("name")), None)


def window(probe: Mapping[str, int]) -> int:
    """Seconds of failures until a probe acts, with Kubernetes' defaults."""
    return int(probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3))
