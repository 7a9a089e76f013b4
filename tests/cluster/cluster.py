"""A cluster of the tests: what was put into it, and taking all of it out again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from packaging.version import Version

from tests.cluster.api import Api, Object, Refused
from tests.cluster.programs import until

_KEPT = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


class Cluster:
    """`api` as administrator, and the objects that went in through here."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._put: list[Object] = []
        self._known: set[tuple[str, str]] = set()

    def define(self, folders: Iterable[Path]) -> None:
        """Install the CRDs below `folders`, of each the newest, and wait until they are served."""
        newest: dict[str, Object] = {}
        for folder in folders:
            for path in sorted(folder.rglob("*.yaml"), key=lambda path: (_age(path), path)):
                for item in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
                    if item and item.get("kind") == "CustomResourceDefinition":
                        newest[item["metadata"]["name"]] = item
        for item in newest.values():
            item.pop("status", None)
        self.define_these([*newest.values()])

    def define_these(self, definitions: Sequence[Object]) -> None:
        """Install CRDs, and wait until they are served."""
        for item in definitions:
            self.api.create(item)
        self._known = until(lambda: self._served(definitions), "CRDs", seconds=300)

    def _served(self, wanted: Iterable[Object]) -> set[tuple[str, str]]:
        known = self.api.kinds()
        kinds = {
            (f"{item['spec']['group']}/{version['name']}", item["spec"]["names"]["kind"])
            for item in wanted
            for version in item["spec"]["versions"]
            if version["served"]
        }
        return known if kinds <= known else set()

    def known(self, item: Mapping[str, Any]) -> bool:
        """Whether the API server has its kind."""
        return (item["apiVersion"], item["kind"]) in self._known

    def put(self, items: Iterable[Object]) -> list[Object]:
        """Apply `items` in their order, with namespaces that nobody makes; returns them as they are stored.

        Raises:
            Refused: one is not accepted; the text names it.
        """
        stored = []
        for item in self.with_namespaces(items):
            try:
                stored.append(self.api.apply(item))
            except Refused as refusal:
                raise Refused(refusal.code, f"{named(item)}: {refusal.message}") from None
            self._put.append(item)
        return stored

    def with_namespaces(self, items: Iterable[Object]) -> list[Object]:
        """`items` after the namespaces that something else makes: Flux' release, or the cluster's owner."""
        listed = list(items)
        made = {item["metadata"]["name"] for item in listed if item["kind"] == "Namespace"}
        used = {item["metadata"].get("namespace") for item in listed} - {None}
        return [
            *(namespace(name) for name in sorted(used - made - _KEPT) if not self._has(name)),
            *listed,
        ]

    def _has(self, name: str) -> bool:
        return self.api.get("v1", "Namespace", name) is not None

    def dry_run(self, item: Object) -> str | None:
        """Why the API server would refuse `item`; None: it would not."""
        try:
            self.api.apply(item, dry_run=True)
        except Refused as refusal:
            return refusal.message
        return None

    def clear(self) -> None:
        """Delete everything that went in, but for namespaces: the controller takes ten seconds for one.

        Policies go first, which might be against the end of something else.
        """
        put = {named(item): item for item in self._put if item["kind"] != "Namespace"}
        for item in sorted(put.values(), key=lambda item: "AdmissionPolicy" not in item["kind"]):
            self.api.delete(item)
            if item["metadata"].get("finalizers"):  # of a controller that is not here
                self._release(item)
        for kind in ("Pod", "Event", "Node"):  # made by tests, by controllers, and played
            for item in self.api.list("v1", kind):
                self.api.delete(item, at_once=kind == "Pod")
        until(
            lambda: not [*self._left(put)],
            "the end of everything",
            seconds=300,
            lacking=lambda: self._left(put),
        )
        self._put.clear()

    def _release(self, item: Object) -> None:
        try:
            self.api.merge(item, {"metadata": {"finalizers": None}})
        except Refused as refusal:
            if refusal.code != 404:
                raise

    def _left(self, put: dict[str, Object]) -> Iterator[str]:
        for pod in self.api.list("v1", "Pod"):
            if pod["spec"].get("nodeName"):  # waits for a kubelet
                self.api.delete(pod, at_once=True)
        for kind in (("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("batch/v1", "Job")):
            yield from map(named, self.api.list(*kind))
        for name, item in put.items():
            where = item["metadata"].get("namespace", "")
            if self.api.get(item["apiVersion"], item["kind"], item["metadata"]["name"], where):
                yield name


def namespace(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def named(item: Mapping[str, Any]) -> str:
    space = item["metadata"].get("namespace")
    return f"{item['kind']} {f'{space}/' if space else ''}{item['metadata']['name']}"


def condition(item: Mapping[str, Any], kind: str) -> str | None:
    """The status of one of its conditions."""
    for each in item.get("status", {}).get("conditions") or []:
        if each["type"] == kind:
            return str(each["status"])
    return None


def changed(item: Object, path: Sequence[Any], value: object) -> Object:
    """A copy with another value at `path`; None takes it away."""
    copy = deepcopy(item)
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy


def _age(path: Path) -> Version:
    """Of the folder that holds a project's CRDs, such as `karpenter-v1.14.1`."""
    found = re.search(r"-v(\d+(?:\.\d+)*)", path.parent.name)
    return Version(found[1]) if found else Version("0.dev0")
