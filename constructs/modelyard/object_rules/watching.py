"""Rules for what watches: Prometheus keeps its data, rules have what they ask for, receivers have their
secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from modelyard.findings import Finding
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import synchronized_secrets
from modelyard.object_rules.pods import Manifest, at, named
from modelyard.object_rules.quantities import quantity

_STACK: Final = "kube-prometheus-stack"
_JOB: Final = re.compile(r'job="([^/"]+)/([^"]+)"')
_STATES: Final = "gotk_resource_info"
_CLAIM: Final = "storageSpec.volumeClaimTemplate.spec"


def watching_findings(items: list[Manifest]) -> Iterator[Finding]:
    """A Prometheus that forgets, alerts about series that nobody collects, and receivers without a key."""
    stacks = [(item, values) for item in items if (values := _values(item)) is not None]
    classes = {named(item)[1] for item in items if item["kind"] == "StorageClass"}
    secrets = synchronized_secrets(items)
    for item, values in stacks:
        yield from _storage_findings(item, values, classes)
        yield from _receiver_findings(item, values, secrets)
    monitors = {named(item) for item in items if item["kind"] == "PodMonitor"}
    states = any(at(values, "kube-state-metrics.customResourceState.enabled") for _, values in stacks)
    for item in items:
        if item["kind"] == "PrometheusRule" and monitors:  # a tree for simulators has rules alone
            yield from _rule_findings(item, monitors, states=states or not stacks)


def _values(item: Manifest) -> Manifest | None:
    """Values of kube-prometheus-stack, if it is that."""
    if item["kind"] == "HelmRelease" and at(item, "spec.chart.spec.chart") == _STACK:
        return {**(at(item, "spec.values") or {}), "namespace": at(item, "spec.targetNamespace")}
    if item["kind"] == "Application" and at(item, "spec.source.chart") == _STACK:
        values = at(item, "spec.source.helm.valuesObject") or {}
        return {**values, "namespace": at(item, "spec.destination.namespace")}
    return None


def _storage_findings(item: Manifest, values: Manifest, classes: set[str]) -> Iterator[Finding]:
    spec = at(values, "prometheus.prometheusSpec") or {}
    volume = at(spec, f"{_CLAIM}.resources.requests.storage")
    if volume is None:
        yield broken(item, "keeps its data in the pod, and loses them with it", f"keep value {_CLAIM}")
        return
    chosen = at(spec, f"{_CLAIM}.storageClassName")
    if chosen not in classes:
        yield broken(
            item, f"waits for a volume of class {chosen}, which nobody renders", "keep its StorageClass"
        )
    kept = str(spec.get("retentionSize") or "")
    # Prometheus writes GiB as GiB, Kubernetes as Gi.
    if not kept or quantity(kept.removesuffix("B")) >= quantity(volume):
        yield broken(
            item,
            f"fills its volume of {volume}: retentionSize is {kept or 'not set'}",
            f"keep a retentionSize below {volume}",
        )


def _receiver_findings(
    item: Manifest, values: Manifest, secrets: set[tuple[str | None, str]]
) -> Iterator[Finding]:
    mounted = set(at(values, "alertmanager.alertmanagerSpec.secrets") or ())
    for name in sorted(mounted):
        if (values["namespace"], name) not in secrets:
            yield broken(
                item,
                f"its Alertmanager waits for secret {name} in {values['namespace']}, which nobody renders",
                "keep its ExternalSecret",
            )
    config = at(values, "alertmanager.config") or {}
    known = {str(receiver.get("name")) for receiver in config.get("receivers") or ()}
    for route in at(config, "route.routes") or ():
        if route.get("receiver") not in known:
            yield broken(
                item, f"routes alerts to {route.get('receiver')}, who is no receiver", "keep its receivers"
            )
    files = re.findall(r"/etc/alertmanager/secrets/([^/']+)/", str(config))
    for name in sorted(set(files) - mounted):
        yield broken(
            item,
            f"reads secret {name}, which its Alertmanager does not mount",
            "keep value alertmanager.alertmanagerSpec.secrets",
        )


def _rule_findings(
    rule: Manifest, monitors: set[tuple[str | None, str]], *, states: bool
) -> Iterator[Finding]:
    text = " ".join(str(each.get("expr")) for group in rule["spec"]["groups"] for each in group["rules"])
    for namespace, name in sorted(set(_JOB.findall(text))):
        if (namespace, name) not in monitors:
            yield broken(
                rule,
                f"asks for targets of PodMonitor {name} in {namespace}, which nobody renders",
                "keep the PodMonitor",
            )
    if _STATES in text and not states:
        yield broken(
            rule,
            f"asks for {_STATES}, which kube-state-metrics does not report by itself",
            "keep value kube-state-metrics.customResourceState",
        )
