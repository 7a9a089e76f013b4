"""Rules for rendered objects, after patches: references and selectors match, and every pod meets the
standard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from modelyard.findings import Finding
from modelyard.object_rules.addons import addon_findings
from modelyard.object_rules.broken import broken
from modelyard.object_rules.cache_folders import sweep_findings
from modelyard.object_rules.delivery import delivery_findings
from modelyard.object_rules.joins import join_findings, reference_findings
from modelyard.object_rules.networks import network_findings
from modelyard.object_rules.nodes import node_findings
from modelyard.object_rules.pod_rules import pod_findings
from modelyard.object_rules.pods import DRAIN, WORKLOADS, Manifest, at, containers, pod_templates, selects
from modelyard.object_rules.registries import registry_findings
from modelyard.object_rules.routes import route_findings
from modelyard.object_rules.scalers import scaler_findings
from modelyard.object_rules.shares import share_findings
from modelyard.object_rules.sizes import size_findings
from modelyard.object_rules.watching import watching_findings
from modelyard.releases import ImageRoutes
from modelyard.secret_values import is_harmless, names_a_secret, sightings, with_anchors

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
    "Gateway": ("spec.listeners",),
    "HTTPRoute": ("spec.rules",),
    "InferencePool": ("spec.selector.matchLabels",),
    "Service": ("spec.selector", "spec.ports"),
    "ServiceMonitor": ("spec.selector.matchLabels", "spec.endpoints"),
}


def check_objects(objects: Iterable[Manifest], images: ImageRoutes | None = None) -> list[Finding]:
    """Every broken rule among `objects`, which are all objects of one environment.

    Args:
        images: From where the environment pulls; default: from where everything is published.
    """
    items = list(objects)
    if incomplete := [*_incomplete(items)]:
        return incomplete  # the other rules read the missing fields
    findings = [
        *_duplicates(items),
        *_secret_findings(items),
        *size_findings(items),
        *join_findings(items),
        *reference_findings(items),
        *network_findings(items),
        *node_findings(items),
        *route_findings(items),
        *scaler_findings(items),
        *share_findings(items),
        *addon_findings(items),
        *delivery_findings(items),
        *watching_findings(items),
        *sweep_findings(items),
        *registry_findings(items, images or ImageRoutes()),
    ]
    open_to_hosts = {i["metadata"]["name"] for i in items if i["kind"] == "Namespace" and _unrestricted(i)}
    for item in items:
        # Pods that read devices or own a disk have separate namespaces at another level; models never run
        # there.
        if item["kind"] in WORKLOADS and item["metadata"].get("namespace") not in open_to_hosts:
            findings += pod_findings(item)
    return findings


def _unrestricted(namespace: Manifest) -> bool:
    labels = namespace["metadata"].get("labels", {})
    return labels.get("pod-security.kubernetes.io/enforce") in ("baseline", "privileged")


def _incomplete(items: list[Manifest]) -> Iterator[Finding]:
    for item in items:
        for path in (*_EVERYWHERE, *_REQUIRED.get(item.get("kind", ""), ())):
            if at(item, path) is None:
                yield broken(item, f"has no {path}", "keep it")


def _duplicates(items: list[Manifest]) -> Iterator[Finding]:
    seen: set[tuple[str, str, str | None, str]] = set()
    for item in items:
        meta = item["metadata"]
        identity = (item["apiVersion"].partition("/")[0], item["kind"], meta.get("namespace"), meta["name"])
        if identity in seen:
            yield broken(item, "is rendered twice", "rename the model or the pool")
        seen.add(identity)
        if len(meta["name"]) > 63:
            yield broken(
                item, f"name has {len(meta['name'])} characters", "use a name of at most 63 characters"
            )


def _secret_findings(items: list[Manifest]) -> Iterator[Finding]:
    texts = [[*_strings(item)] for item in items]
    suspicious = with_anchors(text for own in texts for text in own)
    for item, own in zip(items, texts, strict=True):
        for text in own:
            for sighting in sightings(text) if text in suspicious else ():
                yield broken(
                    item,
                    f"holds a value that looks like a secret: {sighting.what}, {sighting.shown}",
                    "name a secret instead",
                )
        for name in _written_out(item):
            yield broken(item, f"variable {name} holds a secret written out", "use valueFrom.secretKeyRef")
        if item["kind"] == "Secret":
            yield broken(item, "a Secret with its value would be written to a file", "use an ExternalSecret")


def _written_out(item: Manifest) -> Iterator[str]:
    """Environment variables with literal values whose names suggest a secret."""
    for template in pod_templates(item) if item["kind"] in WORKLOADS else ():
        for container in containers(template["spec"]):
            for variable in container.get("env") or []:
                name = str(variable.get("name", ""))
                if names_a_secret(name) and not is_harmless(name, variable.get("value")):
                    yield name


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
