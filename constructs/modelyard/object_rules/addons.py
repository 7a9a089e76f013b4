"""Add-ons get the values that their pods need: for the Pod Security level of their namespace, and to run on
the nodes that they serve.

Charts are not rendered here; what they do with values is in the table of releases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelyard.findings import Finding
from modelyard.names import NODE_POOL_LABEL
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import Manifest, at, named
from modelyard.releases import Chart, charts

_EFA = "aws-efa-k8s-device-plugin"


@dataclass(frozen=True)
class _Addon:
    """A Flux HelmRelease or an Argo CD Application of a chart."""

    item: Manifest
    chart: Chart
    namespace: str
    values: Manifest


def addon_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Add-ons whose pods would be refused, or never run where they are needed, and whose alerts never end."""
    addons = [found for item in items if (found := _addon(item)) is not None]
    levels = {
        item["metadata"]["name"]: labels.get("pod-security.kubernetes.io/enforce")
        for item in items
        if item["kind"] == "Namespace" and (labels := at(item, "metadata.labels"))
    }
    for item in items:
        if item["kind"] == "HelmRelease":
            yield from _retry_findings(item)
    for addon in addons:
        if levels.get(addon.namespace) == "restricted":
            yield from _restricted_findings(addon)
        for path in addon.chart.disabled:
            if at(addon.values, path) is not False:
                yield broken(
                    addon.item, f"watches what EKS does not show: {path}", f"keep value {path}: false"
                )
        if addon.chart.name == _EFA:
            yield from _fabric_findings(addon, items)


def _addon(item: Manifest) -> _Addon | None:
    if item["kind"] == "HelmRelease":
        name, namespace = at(item, "spec.chart.spec.chart"), at(item, "spec.targetNamespace")
        values = at(item, "spec.values")
    elif item["kind"] == "Application":
        name, namespace = at(item, "spec.source.chart"), at(item, "spec.destination.namespace")
        values = at(item, "spec.source.helm.valuesObject")
    else:
        return None
    chart = charts().get(str(name))
    return _Addon(item, chart, str(namespace), values or {}) if chart else None


def _retry_findings(release: Manifest) -> Iterator[Finding]:
    """Releases that Flux gives up: install and upgrade must be tried again without an end."""
    for action in ("install", "upgrade"):
        strategy = at(release, f"spec.{action}.strategy.name")
        retries = at(release, f"spec.{action}.remediation.retries")
        if strategy != "RetryOnFailure" and not (isinstance(retries, int) and retries < 0):
            yield broken(
                release,
                f"stays failed once its {action} has failed {(retries or 0) + 1} times",
                f"keep spec.{action}.strategy: {{name: RetryOnFailure}}",
            )


def _restricted_findings(addon: _Addon) -> Iterator[Finding]:
    if addon.chart.restricted is None:
        yield broken(
            addon.item,
            f"is installed in {addon.namespace} at level restricted, and nobody has read whether its pods pass it",
            "say in releases.yaml which values they need",
        )
    for path in addon.chart.restricted or ():
        if at(addon.values, path) != "RuntimeDefault":
            yield broken(
                addon.item,
                f"has pods without a seccompProfile, which namespace {addon.namespace} refuses",
                f"keep value {path}: RuntimeDefault",
            )


def _fabric_findings(addon: _Addon, items: list[Manifest]) -> Iterator[Finding]:
    """Pools with EFA interfaces on whose nodes no plug-in would offer them."""
    fabric = {
        named(item)[1]
        for item in items
        if item["kind"] == "EC2NodeClass"
        and any(each.get("interfaceType") == "efa-only" for each in at(item, "spec.networkInterfaces") or ())
    }
    pools = {
        named(item)[1]
        for item in items
        if item["kind"] == "NodePool" and at(item, "spec.template.spec.nodeClassRef.name") in fabric
    }
    chosen = at(addon.values, str(addon.chart.nodes)) or {}
    covered = set(chosen.get("values") or ()) if chosen.get("keys") == [NODE_POOL_LABEL] else set()
    for pool in sorted(pools - covered):
        yield broken(
            addon.item,
            f"does not run on pool {pool}, whose pods wait for EFA interfaces",
            f"keep value {addon.chart.nodes} with key {NODE_POOL_LABEL} and every pool with a fabric",
        )
