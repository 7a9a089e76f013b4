"""The real Flux brings the tree of an S3 bucket into the cluster: each model by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from modelyard.objects.composition import checked_objects
from modelyard.objects.tree import tree_contents
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster, condition
from tests.cluster.control_plane import control_plane
from tests.cluster.flux import Flux, flux
from tests.cluster.player import Player, playing
from tests.cluster.programs import BUILT, definitions, until
from tests.unit.given import a_model, a_plan, an_environment

WEIGHTS = {"chat": "8B", "code": "4B", "draft": "0.6B"}
"""Models, and the sizes of Qwen 3 that they serve: each has a download of its own."""


@dataclass(frozen=True)
class Delivery:
    """A cluster of its own with Flux in it, and what is played."""

    api: Api
    flux: Flux
    player: Player

    def publish(self, *names: str, **changes: object) -> None:
        """Deliver these models, and wait until Flux has fetched them."""
        models = [a_model(name=each, model=f"hf://Qwen/Qwen3-{WEIGHTS[each]}", **changes) for each in names]
        environment = an_environment(delivery="flux", checks={"smoke": True}, monitoring={"enabled": True})
        before = self.flux.revision
        self.flux.publish(tree_contents(checked_objects(a_plan(*models, environment=environment))))
        until(lambda: self.flux.revision != before, "the bucket's new revision")

    def brought(self, *names: str) -> None:
        """Wait until these Kustomizations are ready at the bucket's revision."""

        def missing() -> list[str]:
            found = self.flux.kustomizations()
            return [
                f"{each}: {_why(found.get(each, {}))}"
                for each in names
                if condition(found.get(each, {}), "Ready") != "True"
                or found[each]["status"].get("lastAppliedRevision") != self.flux.revision
            ]

        until(lambda: not missing(), "the Kustomizations", seconds=90, lacking=missing)

    def there(self, kind: str, version: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.api.list(version, kind, "models")}

    @property
    def deployments(self) -> set[str]:
        return self.there("Deployment", "apps/v1")

    @property
    def jobs(self) -> set[str]:
        return self.there("Job", "batch/v1")


def _why(item: dict[str, object]) -> str:
    conditions = item.get("status", {}).get("conditions", [])  # type: ignore[attr-defined]
    return next((each["message"][:300] for each in conditions if each["type"] == "Ready"), "not there")


@pytest.fixture
def delivery(tmp_path: Path) -> Iterator[Delivery]:
    if not BUILT.is_file():
        pytest.skip("no control plane is built: make e2e")
    named = os.environ.get("MODELYARD_CRDS")
    if not named:
        pytest.skip("MODELYARD_CRDS names no folder: the tree has kinds that the cluster would not know")
    with control_plane(tmp_path) as plane, plane.client() as api, plane.client() as another:
        cluster = Cluster(api)
        cluster.define([Path(named), *definitions()])
        with flux(plane, cluster) as started, playing(another) as player:
            yield Delivery(api, started, player)


def test_each_model_comes_and_goes_by_itself(delivery: Delivery) -> None:
    delivery.player.failing.add("qwen3-0-6b-fetch")

    delivery.publish("chat", "code", "draft")

    delivery.brought("platform", "monitoring", "model-chat", "model-code", "check-chat", "check-code")
    assert delivery.deployments == {"chat", "code"}, "a failed download holds back its own model alone"
    assert condition(delivery.flux.kustomizations()["model-draft"], "Ready") == "False"

    delivery.publish("chat", "draft")

    delivery.brought("model-chat", "check-chat")
    until(lambda: delivery.deployments == {"chat"}, "the end of a removed model")
    until(lambda: not [job for job in delivery.jobs if "code" in job or "4b" in job], "the end of its Jobs")
    assert "model-code" not in delivery.flux.kustomizations()
    assert {job for job in delivery.jobs if "8b" in job}, "the others keep their Jobs"
