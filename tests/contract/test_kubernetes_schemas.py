"""Every built-in object against the API schema of Kubernetes 1.36, unknown fields refused."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from modelyard.object_rules.api_schemas import is_custom
from tests.contract.conftest import Tree

VERSION = "1.36"

# The library reads all definitions, a megabyte, for every object again.
for _reader in ("all_versions", "schema_contents"):
    setattr(kubernetes_validate.utils, _reader, cache(getattr(kubernetes_validate.utils, _reader)))


def complaint(item: dict[str, Any]) -> str | None:
    try:
        kubernetes_validate.validate(item, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{item['kind']} {item['metadata']['name']}: {'.'.join(map(str, error.path))}: {error.message}"
    return None


def test_every_object_is_valid(each: Tree) -> None:
    built_in = [item for item in each.objects if not is_custom(item)]

    assert [found for item in built_in if (found := complaint(item))] == []
    assert {"Deployment", "Job", "NetworkPolicy", "Service"} <= {item["kind"] for item in built_in}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "template", "spec", "gracePeriod"), 30),
        (("spec", "template", "spec", "terminationGracePeriodSeconds"), "30s"),
        (("spec", "template", "spec", "containers", 0, "args"), "--port=8000"),
        (("spec", "replicas"), "2"),
        (("metadata", "labels", "modelyard.dev/env"), False),
    ],
)
def test_a_planted_mistake_is_refused(prod: Tree, path: tuple[Any, ...], value: object) -> None:
    broken = deepcopy(prod.only("Deployment", "qwen3-32b-fp8"))
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value

    assert complaint(broken) is not None
