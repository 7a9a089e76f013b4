"""What a patch or a chart changes is checked against Kubernetes' own schemas, at the place in the patch."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.findings import Finding
from modelyard.object_rules import api_schemas
from modelyard.objects.composition import Composition, RenderError, checked_objects
from tests.unit.given import a_model, a_plan


def refused(*patches: tuple[str, dict[str, Any]], hook: Any = None) -> list[Finding]:
    model = a_model(patches=[{"kind": kind, "merge": merge} for kind, merge in patches])
    with pytest.raises(RenderError) as raised:
        checked_objects(a_plan(model), hook)
    return [found for found in raised.value.findings if found.code == "K8S002"]


@pytest.mark.parametrize(
    ("kind", "merge", "field", "message", "fix"),
    [
        (
            "Deployment",
            {"spec": {"replicaz": 3}},
            ("spec", "replicaz"),
            "spec has no field replicaz",
            "did you mean 'replicas'?",
        ),
        (
            "Deployment",
            {"spec": {"replicas": "3"}},
            ("spec", "replicas"),
            'spec.replicas must be of type integer, got "3"',
            "correct the value",
        ),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"tolerations": [{"key": "a"}, {"kee": "b"}]}}}},
            ("spec", "template", "spec", "tolerations"),
            "spec.template.spec.tolerations[1] has no field kee",
            "did you mean 'key'?",
        ),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"volumes": [{"emptyDir": {}}]}}}},
            ("spec", "template", "spec", "volumes"),
            "spec.template.spec.volumes[0] lacks name",
            "add it",
        ),
        (
            "Service",
            {"spec": {"zzz": 1}},
            ("spec", "zzz"),
            "spec has no field zzz",
            "known fields are allocateLoadBalancerNodePorts, clusterIP,",
        ),
    ],
)
def test_a_field_that_no_api_server_takes_is_found_in_the_patch(
    kind: str, merge: dict[str, Any], field: tuple[str, ...], message: str, fix: str
) -> None:
    [found] = refused((kind, merge))

    assert found.message.endswith(f": {message}")
    assert found.fix.startswith(fix)
    assert found.field == ("patches", 0, "merge", *field)


def test_of_two_patches_the_one_that_sets_the_field_is_named() -> None:
    [found] = refused(("Deployment", {"spec": {"replicas": 3}}), ("Deployment", {"spec": {"paused": "yes"}}))

    assert found.field == ("patches", 1, "merge", "spec", "paused")


def test_what_a_chart_adds_is_checked_as_well() -> None:
    def compose(composition: Composition) -> None:
        composition.add(
            "extras",
            [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dataa": {}},
                {"apiVersion": "apps/v9", "kind": "ConfigMap", "metadata": {"name": "b"}},
            ],
        )

    assert [str(found) for found in refused(hook=compose)] == [
        "K8S002 error: ConfigMap a: the object has no field dataa; did you mean 'data'?",
        "K8S002 error: ConfigMap b: Kubernetes 1.36 has no ConfigMap in apps/v9; correct apiVersion and kind",
    ]


@pytest.mark.parametrize(
    ("version", "known"), [("1.36", False), ("1.99", False), ("1.25", True), ("1.2", True)]
)
def test_the_environments_version_is_the_one_that_counts(version: str, known: bool) -> None:
    """Flow control's v1beta2 was served until 1.28; an unknown version is judged by its nearest."""
    item = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta2",
        "kind": "FlowSchema",
        "metadata": {"name": "a"},
    }

    assert (api_schemas.complaints(item, version) == []) is known


def test_without_the_schemas_a_wrong_type_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_schemas, "installed", lambda: False)
    model = a_model(patches=[{"kind": "Deployment", "merge": {"spec": {"replicas": "3"}}}])

    with pytest.raises(RenderError, match=r"wrong type.*install modelyard"):
        checked_objects(a_plan(model))
