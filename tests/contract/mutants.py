"""Removes safety settings from the rendered objects, one at a time, and prints the check that notices: `make
mutants`.

Checks in order: the rules of `modelyard.object_rules`, the production checklist, Kubernetes' own schemas and,
with MODELYARD_CRDS, the CRDs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from modelyard.object_rules import check_objects
from modelyard.object_rules.api_schemas import is_custom
from modelyard.object_rules.checklist import Result, checklist
from modelyard.object_rules.definitions import complaints, definitions
from modelyard.planning import Plan
from modelyard.project import load_project
from tests.contract.conftest import folders_of, read_tree
from tests.contract.mutations import MUTATIONS, Manifest, Mutation
from tests.contract.test_kubernetes_schemas import complaint


@dataclass(frozen=True)
class Catch:
    """Which check noticed, and what it said."""

    check: str
    message: str


@cache
def rendered(environment: str) -> tuple[Plan, tuple[Manifest, ...]]:
    from modelyard.objects.rendering import render

    planned = load_project(environment, *folders_of(environment)).plan()
    assert planned is not None
    with tempfile.TemporaryDirectory() as folder:
        render(planned, Path(folder))
        return planned, tuple(read_tree(Path(folder)))


@cache
def _failing_before(environment: str) -> frozenset[str]:
    """Points that fail already would hide what a mutation does."""
    planned, objects = rendered(environment)
    return frozenset(f"{v.model} {v.point}" for v in checklist(planned, objects) if v.result is Result.FAIL)


def catch(mutation: Mutation) -> Catch | None:
    """The first check that notices `mutation`; None when it would be deployed."""
    planned, objects = rendered(mutation.environment)
    return caught_in(planned, mutation.applied(objects), _failing_before(mutation.environment))


def caught_in(planned: Plan, objects: list[Manifest], known: frozenset[str] = frozenset()) -> Catch | None:
    """The first check that objects to `objects`."""
    for finding in check_objects(objects, planned.environment.routes):
        return Catch(f"rule {finding.code}", finding.message)
    for verdict in checklist(planned, objects):
        if verdict.result is Result.FAIL and f"{verdict.model} {verdict.point}" not in known:
            return Catch(f"checklist {verdict.point}", f"{verdict.model}: {verdict.reason}")
    for item in objects:
        if not is_custom(item) and (found := complaint(item)):
            return Catch("schema of Kubernetes", found)
    if where := os.environ.get("MODELYARD_CRDS"):
        for item in filter(is_custom, objects):
            schema = definitions(Path(where)).get((item["apiVersion"], item["kind"]))
            for found in complaints(item, schema) if schema else []:
                return Catch("definition K8S002", f"{item['kind']} {item['metadata']['name']}: {found}")
    return None


def main() -> int:
    """Print the table; 1 when a line can be taken out and nobody notices."""
    catches = [(mutation, catch(mutation)) for mutation in MUTATIONS]
    print(f"{'mutation':32} {'object':44} {'caught by':22} message")
    for mutation, caught in catches:
        target = f"{mutation.kind} {mutation.object}"
        check, message = (caught.check, caught.message) if caught else ("NOBODY", "")
        print(f"{mutation.name:32} {target:44} {check:22} {message}")
    missed = sum(caught is None for _, caught in catches)
    by: dict[str, int] = {}
    for _, caught in catches:
        check = caught.check.split()[0] if caught else "nobody"
        by[check] = by.get(check, 0) + 1
    print(
        f"{len(catches)} mutations: {', '.join(f'{number} by {check}' for check, number in sorted(by.items()))}"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
