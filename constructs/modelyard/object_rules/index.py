"""Lookup of objects by selector or name, without scanning thousands of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from modelyard.object_rules.pods import Manifest, at, named, pod_labels, selects


def labels_of(item: Manifest) -> Mapping[str, str]:
    """An object's labels."""
    labels: Mapping[str, str] = at(item, "metadata.labels") or {}
    return labels


class Labelled:
    """Objects by label and value; `labels` returns the labels that a selector matches: the object's, or those
    of its pods."""

    def __init__(
        self, items: Iterable[Manifest], labels: Callable[[Manifest], Mapping[str, str]] = pod_labels
    ) -> None:
        self._by_label: dict[tuple[str, str], list[tuple[Mapping[str, str], Manifest]]] = defaultdict(list)
        for item in items:
            seen = labels(item)
            for pair in seen.items():
                self._by_label[pair].append((seen, item))

    def chosen(self, selector: Mapping[str, str]) -> list[Manifest]:
        """Objects that `selector` matches, in all namespaces; none for an empty selector."""
        few = min((self._by_label.get(pair, []) for pair in selector.items()), key=len, default=[])
        return [item for seen, item in few if selects(selector, seen)]

    def chosen_beside(self, item: Manifest, selector: Mapping[str, str]) -> list[Manifest]:
        """Objects that `selector` matches in the namespace of `item`."""
        return [found for found in self.chosen(selector) if named(found)[0] == named(item)[0]]


def reference(item: Manifest) -> tuple[str | None, str, str]:
    """Namespace, kind and name."""
    return named(item)[0], item["kind"], named(item)[1]


def by_target(items: Iterable[Manifest]) -> dict[tuple[str | None, str, str], Manifest]:
    """Objects by the key of a `scaleTargetRef`."""
    return {reference(item): item for item in items}


def scaled(scaler: Manifest) -> tuple[str | None, str, str]:
    """Namespace, kind and name of a ScaledObject's target; the default kind is Deployment (KEDA's
    default)."""
    kind = at(scaler, "spec.scaleTargetRef.kind") or "Deployment"
    return named(scaler)[0], str(kind), str(at(scaler, "spec.scaleTargetRef.name"))


def synchronized_secrets(items: Iterable[Manifest]) -> set[tuple[str | None, str]]:
    """Namespace and name of every Secret that an ExternalSecret writes."""
    return {
        (named(item)[0], at(item, "spec.target.name") or named(item)[1])
        for item in items
        if item["kind"] == "ExternalSecret"
    }
