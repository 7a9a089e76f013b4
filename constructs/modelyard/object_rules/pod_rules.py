"""Rules for every pod: confined, offline, with resources; and for every server: probes, drain, and
rollout."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.names import NODE_POOL_LABEL
from modelyard.object_rules.broken import broken
from modelyard.object_rules.one_off_jobs import one_off_findings
from modelyard.object_rules.pods import (
    DRAIN,
    SERVING,
    Manifest,
    at,
    containers,
    pod_templates,
    runs_engine,
    variables,
    window,
)
from modelyard.object_rules.quantities import quantity, unreadable
from modelyard.object_rules.volumes import volume_findings

_AMOUNT = "write a number with a unit, such as 500m or 2Gi"
_ROLLING = {
    "Deployment": "spec.strategy.rollingUpdate",
    "LeaderWorkerSet": "spec.rolloutStrategy.rollingUpdateConfiguration",
}


_TTL = "ttlSecondsAfterFinished"
_ELECTION = re.compile(r"--?ha-enable-leader-election(=(?!f|F|0).*)?$")  # as Go reads a Boolean flag


def pod_findings(workload: Manifest) -> Iterator[Finding]:
    """Pod Security Standard `restricted`, and the timing of probes and drain."""
    for template in pod_templates(workload):
        yield from _restriction_findings(workload, template["spec"])
        yield from _resource_findings(workload, template["spec"])
        yield from volume_findings(workload, template["spec"], runs_engine=runs_engine(workload))
        policy = template["spec"].get("restartPolicy", "Always")
        if workload["kind"] in ("Job", "CronJob") and policy not in ("Never", "OnFailure"):
            yield broken(workload, f"starts again whatever it did: restartPolicy {policy}", "keep Never")
        if runs_engine(workload):
            yield from _engine_findings(workload, template["spec"])
        if workload["kind"] == "Job" and runs_engine(workload) and workload["spec"].get(_TTL) is not None:
            yield broken(
                workload,
                "runs again once its TTL has deleted it: its delivery creates it",
                f"take {_TTL} out",
            )
        elects = [
            argument
            for each in template["spec"]["containers"]
            for argument in each.get("args") or []
            if _ELECTION.match(argument)
        ]
        if elects and workload["spec"].get("replicas", 1) > 1:
            # llm-d-router v0.9.0, cmd/epp/runner/health.go: only the leader's service is healthy.
            yield broken(
                workload, "has replicas that are never live: only the leader is", f"take {elects[0]} out"
            )
    if workload["kind"] == "LeaderWorkerSet" and not _workers_follow(workload):
        yield broken(
            workload, "may start workers in another zone than their leader", "keep the workers' podAffinity"
        )
    if workload["kind"] in ("Job", "CronJob"):
        yield from one_off_findings(workload)
    if workload["kind"] in SERVING:
        yield from _serving_findings(workload, pod_templates(workload)[0])


def _workers_follow(group: Manifest) -> bool:
    """Whether the workers of a group on a pool's nodes must start in the zone of a pod of the same group.

    Simulators select no pool, and their nodes may have no zones.
    """
    spec = at(group, "spec.leaderWorkerTemplate.workerTemplate.spec")
    if NODE_POOL_LABEL not in (spec.get("nodeSelector") or {}):
        return True
    return any(
        term.get("topologyKey") == "topology.kubernetes.io/zone"
        and "leaderworkerset.sigs.k8s.io/group-index" in (term.get("matchLabelKeys") or [])
        for term in at(spec, "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution") or []
    )


def _restriction_findings(workload: Manifest, spec: Manifest) -> Iterator[Finding]:
    context = spec.get("securityContext", {})
    if any(spec.get(field) for field in ("hostNetwork", "hostPID", "hostIPC")):
        yield broken(workload, "joins a namespace of the host", "remove hostNetwork, hostPID and hostIPC")
    if (
        context.get("runAsNonRoot") is not True
        or context.get("runAsUser") == 0
        or context.get("seccompProfile", {}).get("type") != "RuntimeDefault"
    ):
        yield broken(workload, "may run as root or without seccomp", "keep the pod's securityContext")
    if any("hostPath" in volume for volume in spec.get("volumes", [])):
        yield broken(workload, "mounts a path of the host", "use an emptyDir or a claim")
    if spec.get("enableServiceLinks") is not False:
        yield broken(workload, "gets variables of every Service", "keep enableServiceLinks: false")
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        inner = container.get("securityContext", {})
        restricted = (
            inner.get("allowPrivilegeEscalation") is False
            and inner.get("capabilities", {}) == {"drop": ["ALL"]}
            and inner.get("readOnlyRootFilesystem") is True
            and not inner.get("privileged")
            and not {"runAsNonRoot", "runAsUser", "seccompProfile"}
            & set(inner)  # the pod's settings hold for all containers
        )
        if not restricted:
            yield broken(
                workload, f"container {container.get('name')} is not restricted", "keep its securityContext"
            )


def _serving_findings(workload: Manifest, template: Manifest) -> Iterator[Finding]:
    spec = template["spec"]
    server = spec["containers"][0]
    missing = [name for name in ("startupProbe", "readinessProbe", "livenessProbe") if name not in server]
    if missing:
        yield broken(workload, f"has no {', '.join(missing)}", "keep the three probes")
        return
    if window(server["livenessProbe"]) <= window(server["readinessProbe"]):
        yield broken(
            workload, "is killed before it stops getting traffic", "keep liveness slower than readiness"
        )
    deadline = workload["spec"].get("progressDeadlineSeconds", 600)
    if workload["kind"] == "Deployment" and deadline <= window(server["startupProbe"]):
        yield broken(workload, "fails its rollout while it may still start", "raise progressDeadlineSeconds")
    yield from _drain_findings(workload, template)
    rolling = at(workload, _ROLLING[workload["kind"]]) or {}
    if not rolling.get("maxSurge") and not rolling.get("maxUnavailable"):
        yield broken(workload, "can never roll out", "allow a surge or an unavailable pod")


def _drain_findings(workload: Manifest, template: Manifest) -> Iterator[Finding]:
    """Running requests get enough time to finish, through the engine's own drain mechanism."""
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
        yield broken(
            workload,
            f"cuts requests off: grace {grace} s, {pause} s + {drain} s needed",
            "raise the grace period",
        )


def _engine_findings(workload: Manifest, spec: Manifest) -> Iterator[Finding]:
    """An engine is offline, has no token, and mounts its weights read-only."""
    server = spec["containers"][0]
    told = variables(server)
    if told.get("HF_HUB_OFFLINE") != "1":
        yield broken(workload, "may ask the Hub for files", "keep HF_HUB_OFFLINE=1")
    if {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} & set(told):
        yield broken(workload, "has a Hugging Face token", "leave the token to the fetch job")
    if spec.get("automountServiceAccountToken") is not False:
        yield broken(workload, "may talk to the API server", "keep automountServiceAccountToken: false")


def _resource_findings(workload: Manifest, spec: Manifest) -> Iterator[Finding]:
    for container in containers(spec):
        name, image = container.get("name"), str(container.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield broken(workload, f"image {image or 'of ' + str(name)} moves", "name a version or a digest")
        limits = at(container, "resources.limits") or {}
        asked = at(container, "resources.requests") or {}
        if "memory" not in limits:
            yield broken(workload, f"container {name} has no memory limit", "keep resources.limits.memory")
        stated = {
            f"resources.{part}.{resource}": amount
            for part, amounts in (("requests", asked), ("limits", limits))
            for resource, amount in amounts.items()
        }
        if wrong := {field: why for field, amount in stated.items() if (why := unreadable(amount))}:
            for field, why in wrong.items():
                yield broken(workload, f"{field} of container {name}: {why}", _AMOUNT)
            continue
        for resource in sorted({key for key in (*limits, *asked) if "/" in key}):
            if quantity(limits.get(resource)) != quantity(asked.get(resource)):
                yield broken(workload, f"requests and limits differ in {resource}", "keep them equal")
    for volume in spec.get("volumes") or []:
        scratch = volume.get("emptyDir")
        if scratch is not None and not scratch.get("sizeLimit"):
            yield broken(workload, f"volume {volume.get('name')} may fill the node", "keep its sizeLimit")
        elif why := unreadable((scratch or {}).get("sizeLimit")):
            yield broken(workload, f"emptyDir.sizeLimit of volume {volume.get('name')}: {why}", _AMOUNT)
