"""Flux's Kustomizations: each object is delivered once, and no model waits for another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from modelyard.objects.composition import Composition, checked_objects
from modelyard.objects.delivery.kustomizations import DELIVERY, FOLDER_MINUTES, delivered_parts
from modelyard.spec import Environment, Model
from tests.unit.given import a_model, a_plan, an_environment

Objects = dict[str, list[dict[str, Any]]]
OURS = {"addons", "platform", "monitoring"}
FLUX = an_environment(delivery="flux", checks={"smoke": True}, secrets={"hf-token": "lab/hf"})
BATCH = {"input": "efs://batches/in.jsonl", "output": "efs://batches/out.jsonl"}
OWN_CACHE = {"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"}
ARGO = {
    "delivery": "argocd",
    "git": {"url": "https://git.example.com/a.git", "path": "dist"},
    "cache": OWN_CACHE,
}


def folders(*models: Model, environment: Environment = FLUX, hook: Any = None) -> Objects:
    return checked_objects(a_plan(*models, environment=environment), hook)


def kustomizations(objects: Objects) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item["spec"] for item in objects[DELIVERY]}


def waited_for(spec: Mapping[str, Any]) -> list[str]:
    """What it waits for at every revision."""
    return [each["name"] for each in spec.get("dependsOn", []) if "readyExpr" not in each]


TWO = (a_model(name="one"), a_model(name="two", model="hf://Qwen/Qwen3-4B"))


def test_every_folder_is_delivered_by_exactly_one() -> None:
    objects = folders(*TWO)
    paths = [spec["path"].removeprefix("./") for spec in kustomizations(objects).values()]

    for folder in objects.keys() - OURS - {DELIVERY}:
        assert len([path for path in paths if folder == path or folder.startswith(f"{path}/")]) == 1, folder
    assert all(path in objects for path in paths)


def test_a_model_waits_for_its_own_weights_and_its_check_for_the_model() -> None:
    made = kustomizations(folders(*TWO))
    [fetch] = waited_for(made["model-one"])

    assert fetch.startswith("qwen3-32b-fp8-fetch-")
    assert waited_for(made[fetch]) == []
    assert waited_for(made["check-one"]) == ["model-one", "checks-programs"]
    assert [name for name in made if "one" in " ".join(waited_for(made[name]))] == ["check-one"]


def test_models_of_the_same_weights_wait_for_one_download() -> None:
    made = kustomizations(folders(a_model(name="one"), a_model(name="two")))

    assert waited_for(made["model-one"]) == waited_for(made["model-two"])
    assert len(waited_for(made["model-one"])) == 1


def test_adapters_and_drafts_are_weights_too() -> None:
    adapter = {"name": "legal", "uri": "hf://acme/legal", "revision": "v2"}
    made = kustomizations(folders(a_model(name="one", adapters=[adapter])))

    assert len(waited_for(made["model-one"])) == 2


def test_streamed_weights_are_not_waited_for() -> None:
    environment = an_environment(cache={"readBuckets": ["acme"]})
    model = a_model(name="one", model={"uri": "s3://acme/qwen", "architecture": "Qwen/Qwen3-8B"})
    made = kustomizations(folders(model, environment=environment))

    assert waited_for(made["model-one"]) == []


def test_the_platform_is_waited_for_once() -> None:
    for name, spec in kustomizations(folders(*TWO)).items():
        [platform] = [each for each in spec["dependsOn"] if each["name"] == "platform"]
        assert platform["readyExpr"] == "has(dep.status.lastAppliedRevision)", name


@pytest.mark.parametrize(("schedule", "wait"), [({}, False), ({"schedule": "0 3 * * *"}, True)])
def test_a_batch_that_runs_once_is_not_waited_for(schedule: dict[str, str], wait: bool) -> None:
    made = kustomizations(folders(a_model(name="night", replicas=1, batch=BATCH | schedule)))

    assert made["model-night"]["wait"] is wait


def test_reports_are_substituted_where_jobs_write_them() -> None:
    made = kustomizations(folders(*TWO))

    assert made["check-one"]["postBuild"] == {
        "substitute": {"modelyard_check_reports": "${modelyard_check_reports}"}
    }
    assert [name for name, spec in made.items() if "postBuild" in spec] == ["check-one", "check-two"]


def test_names_are_values_of_labels() -> None:
    """Flux labels what it applies with the Kustomization's name."""
    model = {"uri": "hf://acme/" + "w" * 90, "architecture": "Qwen/Qwen3-8B"}
    made = kustomizations(folders(a_model(name="m" * 40, model=model)))

    assert max(map(len, made)) <= 63


def test_a_folder_of_a_chart_is_delivered_and_one_that_it_removes_is_not() -> None:
    def hook(composition: Composition) -> None:
        note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note", "namespace": "models"}}
        composition.add("extras", [note])
        composition.add("models/_shared", [note | {"metadata": {"name": "other", "namespace": "models"}}])
        del composition.folders["checks/two"]

    made = kustomizations(folders(*TWO, hook=hook))

    assert (made["extras"]["path"], made["models-shared"]["path"]) == ("./extras", "./models/_shared")
    assert "check-one" in made
    assert "check-two" not in made


def test_what_a_chart_changes_in_a_kustomization_stays() -> None:
    def hook(composition: Composition) -> None:
        for item in composition.folders[DELIVERY]:
            item["spec"]["interval"] = "1h"
        composition.add("extras", [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}])

    made = kustomizations(folders(*TWO, hook=hook))

    assert {spec["interval"] for name, spec in made.items() if name != "extras"} == {"1h"}


@pytest.mark.parametrize("settings", [{"delivery": "none", "cache": OWN_CACHE}, ARGO], ids=["none", "argocd"])
def test_other_ways_of_delivery_have_none(settings: dict[str, Any]) -> None:
    assert DELIVERY not in folders(*TWO, environment=an_environment(**settings))


def test_argo_cd_has_an_application_for_each_model_that_takes_its_objects_along() -> None:
    objects = folders(*TWO, environment=an_environment(**ARGO))
    made = {item["metadata"]["name"]: item for item in objects["argocd"]}

    assert {"modelyard-platform", "modelyard-model-one", "modelyard-check-two"} <= made.keys()
    assert "modelyard-models" not in made
    assert made["modelyard-model-one"]["metadata"]["finalizers"]
    assert "finalizers" not in made["modelyard-platform"]["metadata"]


def test_parts_have_names_of_their_own() -> None:
    there = [
        "models/a",
        "models/_a",
        "models/_weights/x-fetch-1",
        "checks/a",
        "checks/_a",
        "extras/b",
        "platform",
    ]

    assert delivered_parts(there) == {
        "checks-a": "checks/_a",
        "check-a": "checks/a",
        "extras": "extras",
        "models-a": "models/_a",
        "models-weights": "models/_weights",
        "model-a": "models/a",
    }


def test_the_folders_that_wait_have_minutes() -> None:
    assert list(FOLDER_MINUTES) == ["addons", "platform", "models/_weights", "models", "checks"]
