"""What happens in a cluster when objects change: by kind and field, as Kubernetes' and Karpenter's sources
have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modelyard.names import MODEL_LABEL
from modelyard.object_rules.index import labels_of
from modelyard.object_rules.pods import at

REFUSED = "refused by the API server"

Manifest = dict[str, Any]
Objects = Mapping[tuple[str, str | None, str], Manifest]

# Kubernetes 1.36: what updates may not touch (validation.ValidateXUpdate of each kind; claims grow only where
# their class allows it, and ours is of static volumes).
IMMUTABLE = {
    "ConfigMap": ("immutable",),
    "Deployment": ("spec.selector",),
    "Job": ("spec.selector", "spec.template", "spec.completions", "spec.completionMode"),
    "LeaderWorkerSet": ("spec.networkConfig",),
    "PersistentVolume": ("spec.csi", "spec.volumeMode"),
    "PersistentVolumeClaim": (
        "spec.accessModes",
        "spec.resources",
        "spec.storageClassName",
        "spec.volumeName",
        "spec.volumeMode",
    ),
    "PriorityClass": ("value", "preemptionPolicy"),
    "RoleBinding": ("roleRef",),
    "Secret": ("type", "immutable"),
    "Service": ("spec.clusterIP",),
    "StorageClass": ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode", "mountOptions"),
}

_TEMPLATES = {
    "Deployment": ("spec.template",),
    "StatefulSet": ("spec.template",),
    "DaemonSet": ("spec.template",),
    "LeaderWorkerSet": ("spec.leaderWorkerTemplate",),
}

# Karpenter 1.14 compares a hash of these with the nodes', without the fields below, of which it asks of
# each node whether it still fits (NodePool.Hash and EC2NodeClass.Hash, `hash:"ignore"`). A new AMI fits no
# node that runs.
_HASHED = {"NodePool": "spec.template", "EC2NodeClass": "spec", "NodeClass": "spec"}
_FITTED = frozenset(
    {
        "requirements",
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "capacityReservationSelectorTerms",
        "ipPrefixCount",
    }
)


def refused(before: Objects, after: Objects) -> list[str]:
    """Fields of objects that are there both times and that may not differ."""
    return [
        f"{' '.join(filter(None, name))}: {field}"
        for name in sorted(before.keys() & after.keys(), key=str)
        for field in IMMUTABLE.get(name[0], ())
        if at(before[name], field) != at(after[name], field)
    ]


def effects(before: Objects, after: Objects) -> list[str]:
    """What a delivery of `after` does in a cluster that has `before`, each once and in order of weight."""
    found = {*_of_changed(before, after), *_of_new_and_gone(before, after)}
    if not found and before != after:
        found.add("in place")
    return [effect for effect in _ORDER if effect in found] + sorted(found - {*_ORDER})


_JOBS = {
    "weights-fetch": "weights are fetched",
    "batch": "the batch runs again",
    "endpoint-check": "the model is checked again",
}

_ORDER = (
    REFUSED,
    "nodes are replaced",
    "nodes that no longer fit are replaced",
    "replicas start again, a few at a time",
    "another kind of workload: replicas start again at once",
    "a claim moves to another volume",
    "weights are fetched",
    "the batch runs again",
    "the model is checked again",
)


def _of_changed(before: Objects, after: Objects) -> Iterator[str]:
    if refused(before, after):
        yield REFUSED
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if old == new:
            continue
        kind = name[0]
        if kind in _HASHED:
            yield from _of_nodes(*(at(item, _HASHED[kind]) for item in (old, new)))
        if any(at(old, field) != at(new, field) for field in _TEMPLATES.get(kind, ())):
            of_model = MODEL_LABEL in labels_of(new) and _component(new) == "server"
            yield "replicas start again, a few at a time" if of_model else f"pods of {_said(new)} start again"
        if kind == "HelmRelease" and old["spec"] != new["spec"]:
            yield f"add-on {name[2]} is upgraded"


def _of_nodes(old: Manifest, new: Manifest) -> Iterator[str]:
    hashed, fitted = ([_parts(spec, keep) for spec in (old, new)] for keep in (False, True))
    if hashed[0] != hashed[1]:
        yield "nodes are replaced"
    elif fitted[0] != fitted[1]:
        yield "nodes that no longer fit are replaced"


def _parts(spec: Manifest, fitted: bool) -> Manifest:
    """The fields of a node class or of a pool's template that are fitted, or those that are hashed."""
    flat = {**spec, **spec.get("spec", {})}
    return {key: value for key, value in flat.items() if (key in _FITTED) is fitted and key != "spec"}


def _of_new_and_gone(before: Objects, after: Objects) -> Iterator[str]:
    gone = [before[name] for name in before.keys() - after.keys()]
    new = [after[name] for name in after.keys() - before.keys()]
    for item in new:
        if item["kind"] == "Job":
            yield _JOBS.get(_component(item), f"Job {item['metadata']['name']} runs")
    servers = [
        {i["kind"] for i in items if _component(i) == "server" and i["kind"] in _TEMPLATES}
        for items in (gone, new)
    ]
    if all(servers) and servers[0] != servers[1]:
        yield "another kind of workload: replicas start again at once"
    for verb, items in (("adds", new), ("removes", gone)):
        kinds = sorted({item["kind"] for item in items} - {"Job", "Kustomization"})
        if kinds:
            yield f"{verb} {', '.join(kinds)}"


def _component(item: Manifest) -> str:
    return labels_of(item).get("app.kubernetes.io/component", "")


def _said(item: Manifest) -> str:
    return f"{item['kind']} {item['metadata']['name']}"
