"""Rules over rendered objects: what must join does, and what must hold of every pod holds, patches included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modelyard.findings import Finding
from modelyard.manifests.pods import (
    DRAIN,
    SERVING,
    WORKLOADS,
    Manifest,
    at,
    pod_labels,
    pod_templates,
    ports,
    same_place,
    selects,
    window,
)
from modelyard.spec.loading import secret_value

__all__ = ["DRAIN", "check_objects", "pod_templates", "selects"]

_EVERYWHERE = ("apiVersion", "kind", "metadata.name")
_POD = ("spec.template.metadata.labels", "spec.template.spec.containers")
_REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Job", "StatefulSet", "DaemonSet"), _POD),
    "CronJob": tuple(path.replace("spec.", "spec.jobTemplate.spec.", 1) for path in _POD),
    "LeaderWorkerSet": tuple(
        path.replace("spec.template", f"spec.leaderWorkerTemplate.{part}Template", 1)
        for part in ("leader", "worker")
        for path in _POD
    ),
    "Deployment": ("spec.selector.matchLabels", *_POD),
    "NetworkPolicy": ("spec.podSelector",),
    "PodMonitor": ("spec.selector.matchLabels", "spec.podMetricsEndpoints"),
    "PrometheusRule": ("spec.groups",),
    "PodDisruptionBudget": ("spec.selector.matchLabels",),
    "ScaledObject": ("spec.scaleTargetRef.name",),
    "Service": ("spec.selector", "spec.ports"),
    "ServiceMonitor": ("spec.selector.matchLabels", "spec.endpoints"),
}


_ROLLING = {
    "Deployment": "spec.strategy.rollingUpdate",
    "LeaderWorkerSet": "spec.rolloutStrategy.rollingUpdateConfiguration",
}


def check_objects(objects: Iterable[Manifest]) -> list[Finding]:
    """Every broken rule among `objects`, which are all objects of one environment."""
    items = list(objects)
    if incomplete := [*_incomplete(items)]:
        return incomplete  # the other rules read what is missing here
    findings = [*_duplicates(items), *_secret_findings(items), *_join_findings(items)]
    open_to_hosts = {i["metadata"]["name"] for i in items if i["kind"] == "Namespace" and _privileged(i)}
    for item in items:
        # What reads devices has a namespace of its own, at another level; models never run there.
        if item["kind"] in WORKLOADS and item["metadata"].get("namespace") not in open_to_hosts:
            findings += _pod_findings(item)
    return findings


def _privileged(namespace: Manifest) -> bool:
    labels = namespace["metadata"].get("labels", {})
    return bool(labels.get("pod-security.kubernetes.io/enforce") == "privileged")


def _broken(item: Manifest, message: str, fix: str) -> Finding:
    labels = at(item, "metadata.labels") or {}
    return Finding(
        "K8S001",
        f"{item.get('kind', 'object')} {at(item, 'metadata.name') or 'without a name'}: {message}",
        fix,
        subject=labels.get("app.kubernetes.io/instance", ""),
        field=("patches",),
    )


def _incomplete(items: list[Manifest]) -> Iterator[Finding]:
    for item in items:
        for path in (*_EVERYWHERE, *_REQUIRED.get(item.get("kind", ""), ())):
            if at(item, path) is None:
                yield _broken(item, f"has no {path}", "keep it")


def _duplicates(items: list[Manifest]) -> Iterator[Finding]:
    seen: set[tuple[str, str, str | None, str]] = set()
    for item in items:
        meta = item["metadata"]
        identity = (item["apiVersion"].partition("/")[0], item["kind"], meta.get("namespace"), meta["name"])
        if identity in seen:
            yield _broken(item, "is rendered twice", "rename the model or the pool")
        seen.add(identity)
        if len(meta["name"]) > 63:
            yield _broken(
                item, f"name has {len(meta['name'])} characters", "use a name of at most 63 characters"
            )


def _secret_findings(items: list[Manifest]) -> Iterator[Finding]:
    for item in items:
        for text in _strings(item):
            if match := secret_value(text):
                yield _broken(
                    item, f"holds a value that looks like a secret, {match[0][:4]}…", "name a secret instead"
                )
        if item["kind"] == "Secret":
            yield _broken(item, "a Secret with its value would be written to a file", "use an ExternalSecret")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value


def _join_findings(items: list[Manifest]) -> Iterator[Finding]:
    def of(kind: str) -> list[Manifest]:
        return [item for item in items if item["kind"] == kind]

    pods = [item for kind in WORKLOADS for item in of(kind)]
    for service in of("Service"):
        chosen = [
            pod
            for pod in pods
            if same_place(service, pod) and selects(service["spec"]["selector"], pod_labels(pod))
        ]
        if len(chosen) != 1:
            yield _broken(
                service, f"selects {len(chosen)} workloads", "keep its selector equal to the pod's labels"
            )
        for port in service["spec"]["ports"]:
            if any(port.get("targetPort") not in ports(pod) for pod in chosen):
                yield _broken(
                    service,
                    f"targets port {port.get('targetPort')}, which no pod has",
                    "use the pod's port name",
                )
    for monitor in of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"].get("matchLabels", {})
        services = [s for s in of("Service") if selects(wanted, s["metadata"].get("labels", {}))]
        if len(services) != 1:
            yield _broken(
                monitor,
                f"selects {len(services)} Services",
                "keep its selector equal to the Service's labels",
            )
        for endpoint in monitor["spec"]["endpoints"]:
            if any(endpoint.get("port") not in [p.get("name") for p in s["spec"]["ports"]] for s in services):
                yield _broken(
                    monitor,
                    f"scrapes port {endpoint.get('port')}, which the Service lacks",
                    "use the port's name",
                )
    for kind in ("PodDisruptionBudget", "Deployment"):
        for item in of(kind):
            wanted = item["spec"]["selector"].get("matchLabels", {})
            if not any(same_place(item, pod) and selects(wanted, pod_labels(pod)) for pod in pods):
                yield _broken(item, "selects no pods", "keep its selector equal to the pod's labels")
    for policy in of("NetworkPolicy"):
        wanted = policy["spec"]["podSelector"].get("matchLabels", {})
        of_a_model = "app.kubernetes.io/instance" in policy["metadata"].get("labels", {})
        if of_a_model and not any(same_place(policy, p) and selects(wanted, pod_labels(p)) for p in pods):
            yield _broken(policy, "selects no pods", "keep its selector equal to the pod's labels")
    for scaler in of("ScaledObject"):
        target = [
            d
            for kind in SERVING
            for d in of(kind)
            if d["metadata"]["name"] == scaler["spec"]["scaleTargetRef"]["name"]
            and d["kind"] == scaler["spec"]["scaleTargetRef"].get("kind", "Deployment")
        ]
        if not target:
            yield _broken(scaler, "scales nothing", "name the Deployment")
        elif "replicas" in target[0]["spec"]:
            yield _broken(target[0], "has replicas and an autoscaler", "leave replicas out")
    accounts = {(a["metadata"].get("namespace"), a["metadata"]["name"]) for a in of("ServiceAccount")}
    for pod in pods:
        for account in {template["spec"].get("serviceAccountName") for template in pod_templates(pod)}:
            if account and (pod["metadata"].get("namespace"), account) not in accounts:
                yield _broken(pod, f"uses service account {account}, which nobody renders", "render it")


def _pod_findings(workload: Manifest) -> Iterator[Finding]:
    """Pod Security Standard `restricted`, and the inequalities of probes and drain."""
    for template in pod_templates(workload):
        yield from _restriction_findings(workload, template["spec"])
    if workload["kind"] in SERVING:
        yield from _serving_findings(workload, pod_templates(workload)[0])


def _restriction_findings(workload: Manifest, spec: Manifest) -> Iterator[Finding]:
    context = spec.get("securityContext", {})
    if any(spec.get(field) for field in ("hostNetwork", "hostPID", "hostIPC")):
        yield _broken(workload, "joins a namespace of the host", "remove hostNetwork, hostPID and hostIPC")
    if (
        context.get("runAsNonRoot") is not True
        or context.get("runAsUser") == 0
        or context.get("seccompProfile", {}).get("type") != "RuntimeDefault"
    ):
        yield _broken(workload, "may run as root or without seccomp", "keep the pod's securityContext")
    if any("hostPath" in volume for volume in spec.get("volumes", [])):
        yield _broken(workload, "mounts a path of the host", "use an emptyDir or a claim")
    if spec.get("enableServiceLinks") is not False:
        yield _broken(workload, "gets variables of every Service", "keep enableServiceLinks: false")
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        inner = container.get("securityContext", {})
        restricted = (
            inner.get("allowPrivilegeEscalation") is False
            and inner.get("capabilities", {}) == {"drop": ["ALL"]}
            and inner.get("readOnlyRootFilesystem") is True
            and not inner.get("privileged")
            and not {"runAsNonRoot", "runAsUser", "seccompProfile"} & set(inner)  # the pod's hold for all
        )
        if not restricted:
            yield _broken(
                workload, f"container {container.get('name')} is not restricted", "keep its securityContext"
            )


def _serving_findings(workload: Manifest, template: Manifest) -> Iterator[Finding]:
    spec = template["spec"]
    server = spec["containers"][0]
    missing = [name for name in ("startupProbe", "readinessProbe", "livenessProbe") if name not in server]
    if missing:
        yield _broken(workload, f"has no {', '.join(missing)}", "keep the three probes")
        return
    if window(server["livenessProbe"]) <= window(server["readinessProbe"]):
        yield _broken(
            workload, "is killed before it stops getting traffic", "keep liveness slower than readiness"
        )
    deadline = workload["spec"].get("progressDeadlineSeconds", 600)
    if workload["kind"] == "Deployment" and deadline <= window(server["startupProbe"]):
        yield _broken(workload, "fails its rollout while it may still start", "raise progressDeadlineSeconds")
    yield from _drain_findings(workload, template)
    rolling = at(workload, _ROLLING[workload["kind"]]) or {}
    if not rolling.get("maxSurge") and not rolling.get("maxUnavailable"):
        yield _broken(workload, "can never roll out", "allow a surge or an unavailable pod")


def _drain_findings(workload: Manifest, template: Manifest) -> Iterator[Finding]:
    """Whether running requests get the time that they need, in the way in which the engine gives it to them."""
    spec, server = template["spec"], template["spec"]["containers"][0]
    pause = server.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    flagged = next(
        (int(a.split("=")[1]) for a in server.get("args", []) if a.startswith("--shutdown-timeout=")), 0
    )
    kind, _, stated = (at(template, "metadata.annotations") or {}).get(DRAIN, "flag").partition(":")
    drain = flagged if kind == "flag" else int(stated or 0)
    grace = spec.get("terminationGracePeriodSeconds", 30)
    waits = kind != "wait" or pause > drain
    if not pause or not drain or not waits or grace <= (pause if kind == "wait" else pause + drain):
        yield _broken(
            workload,
            f"cuts requests off: grace {grace} s, {pause} s + {drain} s needed",
            "raise the grace period",
        )
