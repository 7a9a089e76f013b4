"""No change of a setting changes a field that the API server refuses to change: the delivery would stop."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from modelyard.object_rules.pods import at
from modelyard.objects.composition import checked_objects
from modelyard.project import load_project
from modelyard.spec import Environment, Model
from tests.contract.conftest import ROOT
from tests.unit.given import a_model, a_plan, an_environment

# Kubernetes 1.36: what updates may not touch (validation.ValidateXUpdate of each kind; claims grow only where
# their class allows it, and ours is of static volumes).
IMMUTABLE = {
    "ConfigMap": ("immutable",),
    "Deployment": ("spec.selector",),
    "Job": (
        "spec.selector",
        "spec.template",
        "spec.completions",
        "spec.completionMode",
        "spec.podFailurePolicy",
    ),
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
Objects = dict[tuple[str, str | None, str], dict[str, Any]]


def rendered(environment: Environment, model: Model) -> Objects:
    folders = checked_objects(a_plan(model, environment=environment))
    return {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item
        for objects in folders.values()
        for item in objects
    }


def refused(before: Objects, after: Objects) -> list[str]:
    """Fields of objects that are there both times and that may not differ."""
    return [
        f"{' '.join(filter(None, name))}: {field}"
        for name in sorted(before.keys() & after.keys(), key=str)
        for field in IMMUTABLE.get(name[0], ())
        if at(before[name], field) != at(after[name], field)
    ]


ENVIRONMENT: dict[str, Any] = {
    "secrets": {name: f"lab/{name}" for name in ("hf-token", "clients", "master", "tls")},
    "cache": {"readBuckets": ["acme-weights"]},
}
MODEL_CHANGES: list[dict[str, Any]] = [
    {"replicas": 3},
    {"replicas": {"min": 1, "max": 4}},
    {"engine": {"maxModelLen": 8192}},
    {"engine": {"env": {"A": "b"}}},
    {"model": {"uri": "hf://Qwen/Qwen3-32B-FP8", "revision": "v2"}},
    {"access": {"apiKey": "clients"}},
    {"owner": {"team": "search", "costCenter": "42"}},
    {"drain": "300s"},
    {"cache": "nvme"},
    {"adapters": [{"name": "legal", "uri": "hf://acme/legal"}]},
    {"features": {"tools": True}},
    {"description": "Another text"},
    {"accelerator": "l40s:2"},
    {"availability": "single"},
]
ENVIRONMENT_CHANGES: list[dict[str, Any]] = [
    {"cache": {"sizeGib": 4000, "readBuckets": ["acme-weights"]}},
    {"monitoring": {"enabled": False}},
    {"monitoring": {"labels": {"release": "other"}}},
    {"monitoring": {"receivers": {"chat": {"slack": {"webhook": "clients", "channel": "#llm"}}}}},
    {"removal": "destroy"},
    {"cache": {"sweep": "report", "sweepAfterDays": 90, "readBuckets": ["acme-weights"]}},
    {"checks": {"smoke": False}},
    {"litellm": {"masterKey": "master"}},
    {"officeHours": {"start": "0 7 * * 1-5", "end": "0 19 * * 1-5", "timezone": "Etc/UTC"}},
    {"tags": {"a": "b"}},
    {
        "teams": {
            "search": {"principals": ["arn:aws:iam::123456789012:role/search"], "accelerators": {"l40s": 8}}
        }
    },
    {"pools": {"g6e": {"accelerator": "l40s", "limit": 32, "capacity": ["spot", "on-demand"]}}},
    {"secrets": {**ENVIRONMENT["secrets"], "hf-token": "lab/another"}},
]


@pytest.mark.parametrize("change", MODEL_CHANGES, ids=lambda change: str(change)[:60])
def test_a_changed_model_is_updated_in_place(change: dict[str, Any]) -> None:
    environment = an_environment(**ENVIRONMENT)

    before, after = (rendered(environment, a_model(**changes)) for changes in ({}, change))

    assert before != after
    assert refused(before, after) == []
    assert refused(after, before) == []


@pytest.mark.parametrize("change", ENVIRONMENT_CHANGES, ids=lambda change: str(change)[:60])
def test_a_changed_environment_is_updated_in_place(change: dict[str, Any]) -> None:
    before, after = (
        rendered(an_environment(**{**ENVIRONMENT, **changes}), a_model()) for changes in ({}, change)
    )

    assert refused(before, after) == []
    assert refused(after, before) == []


def test_a_planted_change_is_noticed() -> None:
    before = rendered(an_environment(**ENVIRONMENT), a_model())
    after = deepcopy(before)
    after["PersistentVolumeClaim", "models", "model-cache"]["spec"]["resources"]["requests"]["storage"] = (
        "1Gi"
    )

    assert refused(before, after) == ["PersistentVolumeClaim models model-cache: spec.resources"]


def test_the_kinds_are_those_that_are_rendered() -> None:
    planned = load_project("prod", ROOT / "models", ROOT / "environments").plan()
    assert planned is not None
    kinds = {item["kind"] for objects in checked_objects(planned).values() for item in objects}

    assert len(IMMUTABLE.keys() & kinds) >= 8
