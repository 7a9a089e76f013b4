"""Names, labels and folders of objects, whatever the names of repository and model; and hashes that change
with content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from modelyard.object_rules import check_objects
from modelyard.objects.composition import environment_objects
from modelyard.objects.serving.compile_cache import compile_key
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.tree import tree_contents
from modelyard.planning import ModelPlan
from modelyard.spec import Model
from tests.unit.given import a_model, a_plan, an_environment

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Kinds whose names become parts of host names, or labels of pods.
_HOSTS = ("Service", "Namespace", "Deployment", "LeaderWorkerSet", "Job", "CronJob")

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}"
REPOSITORIES = st.from_regex(rf"{_WORD}/{_WORD}", fullmatch=True)
REVISIONS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,60}", fullmatch=True)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,38}[a-z0-9]", fullmatch=True)


def labels_in(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("labels", "matchLabels") and isinstance(inner, dict):
                yield from inner.items()
            yield from labels_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from labels_in(inner)


def variables_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for variable in value.get("env") or [] if isinstance(value.get("env"), list) else []:
            yield variable["name"]
        for inner in value.values():
            yield from variables_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from variables_in(inner)


@given(repository=REPOSITORIES, revision=REVISIONS, name=NAMES, adapter=NAMES)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_repository_and_any_name_become_objects_that_kubernetes_takes(
    repository: str, revision: str, name: str, adapter: str
) -> None:
    uri = {"uri": f"hf://{repository}", "revision": revision, "architecture": "Qwen/Qwen3-8B"}
    try:
        model = a_model(
            name=name,
            model=uri,
            adapters=[{"name": adapter, "uri": f"hf://{repository}", "rank": 16}],
            engine={"maxModelLen": 8192},
        )
    except ValidationError:
        assume(False)
    environment = an_environment(secrets={"hf-token": "lab/hf-token"})
    plan = a_plan(model, environment=environment)
    assume(plan.models)

    folders = environment_objects(plan)

    items = [item for objects in folders.values() for item in objects]
    assert check_objects(items) == []
    assert all(path.name == path.name.lower() for path in tree_contents(folders))
    for item in items:
        wanted = _LABEL if item["kind"] in _HOSTS else _SUBDOMAIN
        assert wanted.fullmatch(item["metadata"]["name"]), item["metadata"]["name"]
        for key, value in labels_in(item):
            assert _KEY.fullmatch(key), key
            assert _VALUE.fullmatch(str(value)), (key, value)
        assert all(map(_VARIABLE.fullmatch, variables_in(item)))


def only(model: Model) -> ModelPlan:
    [planned] = a_plan(model).models
    return planned


def key_of(plan: ModelPlan) -> str:
    return compile_key(plan, serve_settings(plan))


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": {"name": "vllm", "version": "0.32.0"}},
        {"engine": {"maxModelLen": 4096}},
        {"engine": {"env": {"VLLM_USE_DEEP_GEMM": "0"}}},
        {"patches": [{"kind": "Deployment", "merge": {"spec": {"paused": False}}}]},
        {"accelerator": "l40s:2"},
        {"model": {"uri": "hf://Qwen/Qwen3-32B-FP8", "revision": "0123456789012345678901234567890123456789"}},
    ],
    ids=lambda c: str(c)[:40],
)
def test_another_engine_accelerator_setting_or_revision_compiles_into_another_folder(
    changes: dict[str, Any],
) -> None:
    assert key_of(only(a_model(**changes))) != key_of(only(a_model()))


def test_another_accelerator_and_another_image_compile_into_another_folder() -> None:
    plan = only(a_model())
    release, accelerator = plan.serving.release, plan.serving.accelerator
    built = replace(plan, serving=replace(plan.serving, release=replace(release, image="acme/vllm:1")))
    other = replace(plan, serving=replace(plan.serving, accelerator=replace(accelerator, name="l4")))

    assert len({key_of(plan), key_of(built), key_of(other)}) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": {"min": 2, "max": 4}},
        {"availability": "single"},
        {"access": {"allowFrom": [{"namespace": "apps"}]}},
    ],
)
def test_what_changes_nothing_that_is_compiled_keeps_the_folder(changes: dict[str, Any]) -> None:
    changed = only(a_model(**changes))
    assert key_of(changed) == key_of(only(a_model()))
