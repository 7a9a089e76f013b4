"""Replicas stay as many as they are when a fixed number becomes a range: what the API server is told, by
version. What it then does is in tests/cluster.
"""

from __future__ import annotations

import shlex
from typing import Any

import cel
import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.names import AUTOSCALED_LABEL
from modelyard.object_rules.api_schemas import complaints
from modelyard.objects.composition import checked_objects
from modelyard.objects.platform.kept_replicas import kept_replicas
from tests.unit.given import a_model, a_plan


@pytest.mark.parametrize("version", ["1.35", "1.36"])
def test_the_policy_is_one_that_this_version_serves(version: str) -> None:
    policy, binding = kept_replicas(version)

    assert [complaints(item, version) for item in (policy, binding)] == [[], []]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def workload(replicas: int, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "qwen", "namespace": "models", "labels": {"app": "x", **labels}},
        "spec": {"replicas": replicas},
    }


AUTOSCALED = {AUTOSCALED_LABEL: "true"}


@pytest.mark.parametrize(
    ("before", "after", "labels", "kept"),
    [(4, 1, AUTOSCALED, True), (4, 4, AUTOSCALED, False), (1, 3, AUTOSCALED, False), (4, 1, {}, False)],
)
def test_only_a_fall_of_an_autoscaled_workload_is_the_policy_s(
    before: int, after: int, labels: dict[str, str], kept: bool
) -> None:
    sides = {"object": workload(after, **labels), "oldObject": workload(before, **labels)}
    newer, older = (next(kept_replicas(version))["spec"] for version in ("1.36", "1.35"))
    chosen = [
        all(_said(each["expression"], sides) for each in of["matchConditions"]) for of in (newer, older)
    ]
    [rule] = older["validations"]

    assert chosen[0] is kept
    assert (chosen[1] and not _said(rule["expression"], sides)) is kept


def test_a_version_without_the_mutating_kind_refuses_with_a_command() -> None:
    [rule] = next(kept_replicas("1.35"))["spec"]["validations"]

    told = _said(rule["messageExpression"], {"object": workload(1), "oldObject": workload(4)})

    _, _, command = str(told).partition("first: ")
    echo, _, apply = command.partition(" | ")
    assert yaml.safe_load(shlex.split(echo)[1]) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "qwen", "namespace": "models"},
        "spec": {"replicas": 4},
    }
    assert apply == "kubectl apply --server-side --field-manager modelyard-handover -f -"


@pytest.mark.parametrize(("replicas", "labelled"), [(4, False), ({"min": 2, "max": 6}, True)])
def test_only_workloads_of_an_autoscaler_are_kept(replicas: object, labelled: bool) -> None:
    """A fixed number may be lowered; and the policy is there before any number becomes a range."""
    folders = checked_objects(a_plan(a_model(replicas=replicas)))
    [server] = [item for item in folders["models/qwen"] if item["kind"] == "Deployment"]

    assert (AUTOSCALED_LABEL in server["metadata"]["labels"]) is labelled
    assert AUTOSCALED_LABEL not in server["spec"]["template"]["metadata"]["labels"]
    assert "MutatingAdmissionPolicy" in {item["kind"] for item in folders["platform"]}


def _said(expression: str, variables: dict[str, Any]) -> Any:
    return cel.evaluate(expression, variables)
