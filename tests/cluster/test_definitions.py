"""`modelyard validate --crds` says of a custom resource what the API server says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modelyard.object_rules.api_schemas import is_custom
from modelyard.object_rules.definitions import complaints, definitions
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, named
from tests.cluster.trees import planned, rendered
from tests.contract.custom_resource_mistakes import MISTAKES

WRONG: tuple[object, ...] = ("planted!", -1, None, [], {"planted": 1})
"""Values that stand in the place of each value of an object, one after the other."""


@cache
def where() -> Path:
    if "MODELYARD_CRDS" not in os.environ:
        pytest.skip("MODELYARD_CRDS names no folder of CRDs")
    return Path(os.environ["MODELYARD_CRDS"])


def verdicts(cluster: Cluster, item: Object) -> tuple[str | None, list[str]]:
    """What the server says, and what we say: nothing, if it is accepted."""
    return cluster.dry_run(item), complaints(item, definitions(where())[item["apiVersion"], item["kind"]])


def custom(cluster: Cluster, *environments: str) -> list[Object]:
    """Custom resources that both sides know, in the cluster's namespaces."""
    found = [
        item
        for name in environments
        for item in rendered(planned(name))
        if is_custom(item)
        and cluster.known(item)
        and (item["apiVersion"], item["kind"]) in definitions(where())
    ]
    cluster.put([item for item in cluster.with_namespaces(found) if item["kind"] == "Namespace"])
    return found


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda mistake: f"{mistake[0]} {mistake[1][-1]} {mistake[2]}"
)
def test_both_refuse_a_planted_mistake(
    cluster: Cluster, mistake: tuple[str, tuple[Any, ...], object, str]
) -> None:
    kind, path, value, _ = mistake
    item = next(item for item in custom(cluster, "prod") if item["kind"] == kind)

    assert verdicts(cluster, item) == (None, [])

    server, ours = verdicts(cluster, with_value(item, path, value))
    assert server
    assert ours


def test_both_say_the_same_of_any_wrong_value(cluster: Cluster) -> None:
    """Each value of one object of each kind, replaced by values of every type."""
    first = {
        (item["apiVersion"], item["kind"]): item for item in reversed(custom(cluster, "serving", "argocd"))
    }
    differing = {
        f"{named(item)} {'.'.join(map(str, path))} = {value!r}": found
        for item in first.values()
        for path in paths(item["spec"], ("spec",))
        for value in WRONG
        if bool((found := verdicts(cluster, with_value(item, path, value)))[0]) != bool(found[1])
    }
    assert not differing, "\n".join(f"{name}: {said}" for name, said in differing.items())


def paths(value: object, at: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Of every value below `at`; of a list the first entry alone."""
    children = (
        value.items()
        if isinstance(value, dict)
        else list(enumerate(value))[:1]
        if isinstance(value, list)
        else ()
    )
    for key, child in children:
        yield (*at, key)
        yield from paths(child, (*at, key))


def with_value(item: Object, path: tuple[Any, ...], value: object) -> Object:
    copy = deepcopy(item)
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy
