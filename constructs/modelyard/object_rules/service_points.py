"""Points of the checklist: monitoring, scaling, weights, shutdown and access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.object_rules.pods import (
    DRAIN,
    Manifest,
    at,
    containers,
    flags,
    mount_of,
    named,
    pod_templates,
    selects,
    variables,
    volume_of,
)
from modelyard.object_rules.subject import Reading, RenderedModel, beside_the_point, failed, passed

_JOB = "a job, no endpoint"


def metrics(subject: RenderedModel) -> Reading:
    if subject.batch:
        return beside_the_point(_JOB)
    path = subject.plan.serving.release.metrics_path
    monitors = [monitor for monitor in subject.of("ServiceMonitor") if _watches(subject, monitor)]
    if len(monitors) != 1:
        return failed(f"{len(monitors)} ServiceMonitors read it", "set monitoring.enabled, keep the selector")
    if [e.get("path", "/metrics") for e in at(monitors[0], "spec.endpoints") or []] != [path]:
        return failed(f"the monitor does not read {path}", "keep the endpoint's path")
    boards = {text for item in subject.of("ConfigMap", elsewhere=True) for text in at(item, "data") or {}}
    own = any(name.endswith(f"-model-{subject.plan.name}.json") for name in boards)
    fleet = any(name.endswith("-fleet.json") for name in boards)
    if not fleet or (subject.plan.model.observability.dashboard and not own):
        return failed("no dashboard shows it", "keep the dashboards' ConfigMaps")
    rules = [r for r in subject.of("PrometheusRule") if named(r)[1] == subject.plan.name]
    if not rules:
        return failed("nobody is alerted", "keep the PrometheusRule")
    return passed(f"{path}, {'its own dashboard' if own else 'the dashboard of the fleet'}, alerts")


def _watches(subject: RenderedModel, monitor: Manifest) -> bool:
    wanted = at(monitor, "spec.selector.matchLabels") or {}
    return any(
        selects(wanted, at(service, "metadata.labels") or {})
        and selects(at(service, "spec.selector") or {}, subject.labels)
        for service in subject.of("Service")
    )


def autoscaling(subject: RenderedModel) -> Reading:
    if subject.batch:
        return beside_the_point(_JOB)
    name, kind = named(subject.workload)[1], subject.workload["kind"]
    for scaler in subject.of("ScaledObject"):
        target = at(scaler, "spec.scaleTargetRef") or {}
        if (target.get("name"), target.get("kind", "Deployment")) == (name, kind):
            least, most = (at(scaler, f"spec.{end}ReplicaCount") for end in ("min", "max"))
            return passed(f"{least} to {most} replicas")
    replicas = subject.workload["spec"].get("replicas", 1)
    if replicas >= 2:
        return passed(f"{replicas} replicas, as stated")
    if subject.plan.model.availability == "single":
        return passed("one replica, availability: single is stated")
    return failed(
        "one replica and no autoscaler", "use two replicas, a range, or state `availability: single`"
    )


def cache(subject: RenderedModel) -> Reading:
    serving, given = subject.plan.serving, subject.flags
    path = given.get("model-repository") if subject.engine.prepared else None
    path = path or given.get("tokenizer") or given.get("model-path") or given.get("model")
    path = path or next(iter(map(str, subject.server.get("args") or [])), "")
    if path.startswith("s3://"):
        if given.get("load-format") != "runai_streamer":
            return failed(f"{path} is not streamed", "keep --load-format")
        return passed("streamed from its bucket")
    mount = mount_of(subject.server, path)
    volume = volume_of(subject.pod, mount)
    if mount is None or volume is None:
        return failed(f"no volume holds {path}", "keep the mounts of the model cache")
    if mount.get("readOnly") is not True:
        return failed(f"{mount['mountPath']} can be written", "keep readOnly: true")
    if "emptyDir" in volume:
        names = [c.get("name") for c in containers(subject.pod)]
        if "copy-weights" not in names:
            return failed("nothing copies the weights to the node's disk", "keep the init containers")
        return passed("copied to the node's disk")
    claim = at(volume, "persistentVolumeClaim.claimName")
    if claim is None or subject.named("PersistentVolumeClaim", claim) is None:
        return failed(f"claim {claim} is not rendered", "keep the volume of the model cache")
    return passed(f"claim {claim}, read-only, for {serving.ledger.weights} a rank")


def compile_cache(subject: RenderedModel) -> Reading:
    if not subject.engine.shares_compiled:
        return beside_the_point(f"{subject.engine.name} has no compile cache that may be shared")
    if subject.plan.model.cache_strategy == "s3-stream":
        return beside_the_point("streamed weights come without a shared volume")
    if subject.plan.serving.on_cpu:
        return beside_the_point("code for CPUs is not shared between types of them")
    root = variables(subject.server).get("VLLM_CACHE_ROOT")
    volume = volume_of(subject.pod, mount_of(subject.server, str(root))) or {}
    if "persistentVolumeClaim" not in volume:
        return failed(f"VLLM_CACHE_ROOT {root} is lost with the pod", f"keep its mount of {root}")
    return passed(f"{root} is shared")


def drain(subject: RenderedModel) -> Reading:
    if subject.batch:
        return beside_the_point("a run that was stopped is run again")
    kind, _, stated = (
        (at(pod_templates(subject.workload)[0], "metadata.annotations") or {})
        .get(DRAIN, "flag:0")
        .partition(":")
    )
    pause = at(subject.server, "lifecycle.preStop.sleep.seconds") or 0
    given = flags(subject.server).get("shutdown-timeout", "0") if kind == "flag" else stated
    requests = int(given) if given.isdigit() else 0
    grace = subject.pod.get("terminationGracePeriodSeconds", 30)
    needed = pause if kind == "wait" else pause + requests
    wanted = subject.plan.model.drain
    if requests < wanted or not pause or grace <= needed:
        return failed(
            f"requests get {requests} s of {wanted} s, {grace} s until the kill",
            "keep preStop, the drain flag and terminationGracePeriodSeconds",
        )
    return passed(f"{requests} s for requests, {grace} s in all")


def access(subject: RenderedModel) -> Reading:
    policies = [
        policy
        for policy in subject.of("NetworkPolicy")
        if selects(at(policy, "spec.podSelector.matchLabels") or {}, subject.labels)
    ]
    if not policies:
        return failed("no NetworkPolicy selects it", "keep the NetworkPolicy")
    if not all(rule.get("from") for policy in policies for rule in at(policy, "spec.ingress") or []):
        return failed("everybody may call it", "keep `from` in every rule of the NetworkPolicy")
    exposed = [
        f"{named(service)[1]} is a {service['spec']['type']}"
        for service in subject.of("Service")
        if service["spec"].get("type", "ClusterIP") != "ClusterIP"
        and selects(service["spec"].get("selector") or {}, subject.labels)
    ]
    if exposed:
        return failed(f"Service {exposed[0]}", "keep type: ClusterIP")
    secrets = {at(item, "spec.target.name") for item in subject.of("ExternalSecret")}
    referred = set(_secrets(subject))
    if missing := sorted(referred - secrets):
        return failed(f"nobody renders secret {', '.join(missing)}", "map it under the environment's secrets")
    key = subject.plan.model.access.api_key
    if key and subject.plan.serving.release.api_key_env and key not in referred:
        return failed(f"the server does not ask for the key {key}", "keep its variable")
    return passed(f"{len(policies)} policy, {f'API key {key}' if key and key in referred else 'no API key'}")


def _secrets(subject: RenderedModel) -> Iterator[str]:
    for source in variables(subject.server).values():
        name: Any = at(source, "secretKeyRef.name") if isinstance(source, dict) else None
        if name:
            yield str(name)
