"""Flux delivers each model by itself: no model waits for another one, and no accelerator for a download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modelyard.findings import Finding
from modelyard.names import MODEL_LABEL, MODELS_FOLDER, WEIGHTS_FOLDER
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import labels_of
from modelyard.object_rules.pods import SERVING, Manifest, at

_SHARED = frozenset({"addons", "platform", "monitoring", "delivery"})
"""Kustomizations of Flux's own release."""

_SOURCE = ("modelyard.dev/model-uri", "modelyard.dev/model-revision")


def delivery_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Kustomizations that wait for what may never be ready, or do not wait where that costs something."""
    by_path = {
        str(at(item, "spec.path")).removeprefix("./"): item
        for item in items
        if item["kind"] == "Kustomization" and at(item, "spec.path")
    }
    if not by_path:
        return  # nothing here is delivered by Flux
    names = {item["metadata"]["name"] for item in by_path.values()} | _SHARED
    for item in by_path.values():
        yield from _dependency_findings(item, names)
    fetches = {_source(item): item for item in items if item["kind"] == "Job" and _is_fetch(item)}
    for item in items:
        delivered = by_path.get(f"{MODELS_FOLDER}/{labels_of(item).get(MODEL_LABEL)}")
        if delivered is None:
            continue
        if item["kind"] in SERVING and (fetch := fetches.get(_source(item))):
            yield from _download_findings(item, delivered, fetch, by_path)
        if item["kind"] == "Job" and labels_of(item).get("app.kubernetes.io/component") == "batch":
            if at(delivered, "spec.wait"):
                yield broken(delivered, "is not ready for hours: its batch runs once", "keep `wait: false`")
            if "ttlSecondsAfterFinished" in item["spec"]:
                yield broken(
                    item, "would run again, because Flux recreates what its TTL deleted", "leave its TTL out"
                )


def _dependency_findings(item: Manifest, names: set[str]) -> Iterator[Finding]:
    for dependency in at(item, "spec.dependsOn") or []:
        name = dependency.get("name")
        if name not in names:
            yield broken(
                item, f"waits for {name}, which nothing delivers", "name a Kustomization that is there"
            )
        if name in _SHARED and not dependency.get("readyExpr"):
            yield broken(
                item,
                f"cannot go back to an earlier state while anything in {name} is broken",
                "keep `readyExpr`, so that it waits for the first revision only",
            )


def _download_findings(
    server: Manifest, delivered: Manifest, fetch: Manifest, by_path: Mapping[str, Manifest]
) -> Iterator[Finding]:
    awaited = {
        each.get("name") for each in at(delivered, "spec.dependsOn") or [] if not each.get("readyExpr")
    }
    waiting = by_path.get(f"{WEIGHTS_FOLDER}/{fetch['metadata']['name']}")
    if waiting is None or waiting["metadata"]["name"] not in awaited or not at(waiting, "spec.wait"):
        yield broken(
            server,
            f"holds its accelerators while Job {fetch['metadata']['name']} downloads its weights",
            f"keep the Kustomization of the Job, with `wait: true`, in `dependsOn` of {delivered['metadata']['name']}",
        )


def _is_fetch(item: Manifest) -> bool:
    return labels_of(item).get("app.kubernetes.io/component") == "weights-fetch"


def _source(item: Manifest) -> tuple[str, ...]:
    annotations = at(item, "metadata.annotations") or {}
    return tuple(str(annotations.get(key)) for key in _SOURCE)
