"""Selectors match Pods, and references by name match existing objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import Labelled, by_target, labels_of, scaled, synchronized_secrets
from modelyard.object_rules.pods import (
    INSTANCE,
    SERVING,
    WORKLOADS,
    Manifest,
    at,
    containers,
    is_server,
    named,
    pod_templates,
    ports,
    variables,
)

_REFERENCE = re.compile(r"(?<!\$)\$\((\w+)\)")


def join_findings(items: list[Manifest]) -> Iterator[Finding]:
    def of(kind: str) -> list[Manifest]:
        return [item for item in items if item["kind"] == kind]

    pods = [item for kind in WORKLOADS for item in of(kind)]
    running, services = Labelled(pods), Labelled(of("Service"), labels_of)
    for service in of("Service"):
        chosen = running.chosen_beside(service, service["spec"]["selector"])
        if len(chosen) != 1:
            yield broken(
                service, f"selects {len(chosen)} workloads", "keep its selector equal to the pod's labels"
            )
        for port in service["spec"]["ports"]:
            if any(port.get("targetPort") not in ports(pod) for pod in chosen):
                yield broken(
                    service,
                    f"targets port {port.get('targetPort')}, which no pod has",
                    "use the pod's port name",
                )
    for monitor in of("ServiceMonitor"):
        watched = services.chosen(monitor["spec"]["selector"].get("matchLabels", {}))
        if len(watched) != 1:
            yield broken(
                monitor,
                f"selects {len(watched)} Services",
                "keep its selector equal to the Service's labels",
            )
        for endpoint in monitor["spec"]["endpoints"]:
            if any(endpoint.get("port") not in [p.get("name") for p in s["spec"]["ports"]] for s in watched):
                yield broken(
                    monitor,
                    f"scrapes port {endpoint.get('port')}, which the Service lacks",
                    "use the port's name",
                )
    for kind in ("PodDisruptionBudget", "Deployment"):
        for item in of(kind):
            if not running.chosen_beside(item, item["spec"]["selector"].get("matchLabels", {})):
                yield broken(item, "selects no pods", "keep its selector equal to the pod's labels")
    for policy in of("NetworkPolicy"):
        wanted = policy["spec"]["podSelector"].get("matchLabels", {})
        of_a_model = INSTANCE in policy["metadata"].get("labels", {})
        if of_a_model and not running.chosen_beside(policy, wanted):
            yield broken(policy, "selects no pods", "keep its selector equal to the pod's labels")
    targets = by_target(item for kind in SERVING for item in of(kind))
    for scaler in of("ScaledObject"):
        target = targets.get(scaled(scaler))
        if target is None:
            yield broken(scaler, "scales nothing", "name the Deployment")
        elif "replicas" in target["spec"]:
            yield broken(target, "has replicas and an autoscaler", "leave replicas out")
    accounts = {(a["metadata"].get("namespace"), a["metadata"]["name"]) for a in of("ServiceAccount")}
    for pod in pods:
        for account in {template["spec"].get("serviceAccountName") for template in pod_templates(pod)}:
            if account and (pod["metadata"].get("namespace"), account) not in accounts:
                yield broken(pod, f"uses service account {account}, which nobody renders", "render it")


def reference_findings(items: list[Manifest]) -> Iterator[Finding]:
    """References in pods, and in objects of a server, to objects that are not rendered."""

    def names(kind: str) -> set[tuple[str | None, str]]:
        return {named(item) for item in items if item["kind"] == kind}

    priorities = {name for _, name in names("PriorityClass")}
    secrets = synchronized_secrets(items)
    volumes = (
        ("persistentVolumeClaim", "claimName", names("PersistentVolumeClaim")),
        ("configMap", "name", names("ConfigMap")),
    )
    for workload in items:
        if workload["kind"] not in WORKLOADS:
            continue
        place = named(workload)[0]
        for spec in (template["spec"] for template in pod_templates(workload)):
            priority = spec.get("priorityClassName")
            if priority and priority not in priorities:
                yield broken(
                    workload, f"has priority {priority}, which nobody renders", "keep its PriorityClass"
                )
            for source, key, known in volumes:
                for volume in spec.get("volumes") or []:
                    wanted = at(volume, f"{source}.{key}")
                    if wanted and (place, wanted) not in known:
                        yield broken(workload, f"mounts {wanted}, which nobody renders", "keep the object")
            for container in containers(spec):
                yield from _container_references(workload, spec, container, secrets)
    servers = [item for item in items if is_server(item)]
    answering, guarded = Labelled(servers), set()
    for item in items:
        if item["kind"] == "PodDisruptionBudget":
            guarded |= set(
                map(id, answering.chosen_beside(item, at(item, "spec.selector.matchLabels") or {}))
            )
    for server in servers:
        if id(server) not in guarded:
            yield broken(server, "has no PodDisruptionBudget", "keep it: a drain would stop all replicas")


def _container_references(
    workload: Manifest, spec: Manifest, container: Manifest, secrets: set[tuple[str | None, str]]
) -> Iterator[Finding]:
    have = {volume.get("name") for volume in spec.get("volumes") or []}
    for mount in container.get("volumeMounts") or []:
        if mount.get("name") not in have:
            yield broken(
                workload, f"mounts volume {mount.get('name')}, which the pod lacks", "keep the volume"
            )
    for source in variables(container).values():
        secret = at(source, "secretKeyRef.name") if isinstance(source, dict) else None
        if secret and (named(workload)[0], secret) not in secrets:
            yield broken(workload, f"reads secret {secret}, which nobody renders", "keep its ExternalSecret")
    # The kubelet leaves unknown variables as literal text for the engine; LeaderWorkerSet adds its own
    # variables.
    told = set(variables(container)) | {"LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE"}
    for word in map(str, container.get("args") or []):
        for name in _REFERENCE.findall(word):
            if name not in told:
                yield broken(
                    workload, f"an argument refers to {name}, which is no variable", "define it in env"
                )
