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
from tests.cluster.control_plane import ControlPlane, control_plane
from tests.cluster.flux import Flux, flux
from tests.cluster.player import Player, playing
from tests.cluster.programs import BUILT, definitions, until
from tests.unit.given import a_model, a_plan, an_environment

WEIGHTS = {"chat": "8B", "code": "4B", "draft": "0.6B"}
"""Models, and the sizes of Qwen 3 that they serve: each has a download of its own."""


@dataclass(frozen=True)
class Delivery:
    """A cluster of its own with Flux in it, and what is played."""

    plane: ControlPlane
    api: Api
    flux: Flux
    player: Player

    def publish(self, *names: str, broken: str = "", **changes: object) -> None:
        """Deliver these models, one of them `broken`, and wait until Flux has fetched them."""
        before = self.flux.revision
        if self.store(*names, broken=broken, corrupt="", **changes):
            until(lambda: self.flux.revision != before, "the bucket's new revision")

    def store(self, *names: str, broken: str = "", corrupt: str = "", **changes: object) -> bool:
        """Put these models into the bucket, the file of a `corrupt` one only in part; whether it changes."""
        models = [a_model(name=each, model=f"hf://Qwen/Qwen3-{WEIGHTS[each]}", **changes) for each in names]
        environment = an_environment(delivery="flux", checks={"smoke": True}, monitoring={"enabled": True})
        tree = tree_contents(checked_objects(a_plan(*models, environment=environment)))
        if broken:
            path = Path(f"models/{broken}/deployment-{broken}.yaml")
            tree[path] = tree[path].replace("maxSurge: 1", "maxSurge: 0")
        if corrupt:
            path = Path(f"models/{corrupt}/deployment-{corrupt}.yaml")
            tree[path] = tree[path][: len(tree[path]) // 2] + "\n  - : {"
        return self.flux.publish(tree)

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

        until(lambda: not missing(), "the Kustomizations", seconds=300, lacking=missing)

    def replicas(self, name: str) -> object:
        found = self.api.get("apps/v1", "Deployment", name, "models")
        assert found is not None
        return found["spec"]["replicas"]

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


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    if not BUILT.is_file():
        pytest.skip("no control plane is built: make e2e")
    named = os.environ.get("MODELYARD_CRDS")
    if not named:
        pytest.skip("MODELYARD_CRDS names no folder: the tree has kinds that the cluster would not know")
    folder = tmp_path_factory.mktemp("delivery")
    with control_plane(folder) as plane, plane.client() as api, plane.client() as another:
        cluster = Cluster(api)
        cluster.define([Path(named), *definitions()])
        with flux(plane, cluster) as controllers, playing(another) as player:
            yield Delivery(plane, api, controllers, player)


@pytest.fixture
def delivery(started: Delivery) -> Delivery:
    """Flux with whatever was delivered last; nothing fails."""
    started.player.failing.clear()
    return started


def test_a_failed_download_holds_back_its_own_model_alone(delivery: Delivery) -> None:
    delivery.player.failing.add("qwen3-0-6b-fetch")

    delivery.publish("chat", "code", "draft")

    delivery.brought("platform", "monitoring", "model-chat", "model-code", "check-chat", "check-code")
    assert delivery.deployments == {"chat", "code"}
    assert condition(delivery.flux.kustomizations()["model-draft"], "Ready") == "False"


def test_a_removed_model_leaves_nothing(delivery: Delivery) -> None:
    delivery.publish("chat", "code")
    delivery.brought("model-chat", "model-code", "check-code")

    delivery.publish("chat")

    delivery.brought("model-chat", "check-chat")
    until(lambda: delivery.deployments == {"chat"}, "the end of a removed model")
    until(lambda: not [job for job in delivery.jobs if "code" in job or "4b" in job], "the end of its Jobs")
    until(lambda: "model-code" not in delivery.flux.kustomizations(), "the end of its Kustomization")
    assert {job for job in delivery.jobs if "8b" in job}, "the others keep their Jobs"
    for version, kind in (
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
    ):
        assert "code" not in delivery.there(kind, version)


def test_a_model_that_the_server_refuses_holds_back_nobody(delivery: Delivery) -> None:
    delivery.publish("chat", "code")
    delivery.brought("model-chat", "model-code")

    delivery.publish("chat", "code", broken="code", replicas=3)

    delivery.brought("model-chat", "check-chat")
    assert delivery.replicas("chat") == 3
    assert delivery.replicas("code") == 2, "the server keeps what it had"
    until(lambda: "may not be 0" in _why(delivery.flux.kustomizations()["model-code"]), "the reason")


def test_what_was_changed_or_deleted_by_hand_is_put_back(delivery: Delivery) -> None:
    delivery.publish("chat", replicas=2)
    delivery.brought("model-chat")
    server = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat", "namespace": "models"},
    }
    delivery.api.merge(server, {"spec": {"replicas": 0}})
    delivery.api.delete({**server, "apiVersion": "v1", "kind": "Service"})

    delivery.flux.look_at("model-chat")

    until(lambda: delivery.replicas("chat") == 2, "the replicas that were delivered")
    until(lambda: "chat" in delivery.there("Service", "v1"), "the Service")


def test_an_object_of_others_is_left_alone(delivery: Delivery) -> None:
    """Server-side apply would take over whatever has the name of a rendered object."""
    delivery.publish("chat")
    delivery.brought("model-chat", "check-chat")
    theirs = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "code", "namespace": "models"},
    }
    stored = delivery.api.create(theirs)

    delivery.publish("chat", "code")

    until(
        lambda: (
            "was there before, and is not of Modelyard"
            in _why(delivery.flux.kustomizations().get("model-code", {}))
        ),
        "the policy's reason",
        seconds=120,
    )
    assert delivery.api.get("v1", "ServiceAccount", "code", "models") == stored

    delivery.api.delete(theirs)
    delivery.flux.look_at("model-code")
    delivery.brought("model-chat", "model-code", "check-code")


def uids(delivery: Delivery) -> dict[tuple[str, str], str]:
    """Of everything in the models' namespace that a delivery brings or that is made of it, but for pods."""
    return {
        (item["kind"], item["metadata"]["name"]): item["metadata"]["uid"]
        for version, kind in (
            ("apps/v1", "Deployment"),
            ("batch/v1", "Job"),
            ("v1", "Service"),
            ("v1", "ServiceAccount"),
            ("v1", "ConfigMap"),
            ("v1", "PersistentVolumeClaim"),
            ("policy/v1", "PodDisruptionBudget"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
        )
        for item in delivery.api.list(version, kind, "models")
    }


class TestFaults:
    """Nothing is lost, nothing is there twice, and the last delivery is what is there in the end."""

    def test_two_deliveries_while_flux_is_down_become_the_second(self, delivery: Delivery) -> None:
        delivery.publish("chat", replicas=2)
        delivery.brought("model-chat", "check-chat")
        before, fetched = uids(delivery), delivery.flux.revision

        with delivery.flux.down():
            delivery.store("chat", "draft", replicas=4)
            delivery.store("chat", "code", replicas=3)

        until(lambda: delivery.flux.revision != fetched, "the bucket's new revision")
        delivery.brought("model-chat", "model-code", "check-chat", "check-code")
        assert delivery.deployments == {"chat", "code"}
        assert {delivery.replicas(each) for each in ("chat", "code")} == {3}
        now = uids(delivery)
        kept = {key: uid for key, uid in before.items() if key[0] != "Job" and key[1] == "chat"}
        assert kept
        assert kept.items() <= now.items(), "nothing of a model that stays is made again"

    def test_a_file_that_is_no_yaml_holds_back_its_own_model_alone(self, delivery: Delivery) -> None:
        delivery.publish("chat", "code", replicas=2)
        delivery.brought("model-chat", "model-code")
        fetched = delivery.flux.revision

        delivery.store("chat", "code", corrupt="code", replicas=3)

        until(lambda: delivery.flux.revision != fetched, "the bucket's new revision")
        delivery.brought("model-chat", "check-chat")
        until(
            lambda: "deployment-code.yaml" in _why(delivery.flux.kustomizations()["model-code"]),
            "the name of the file",
        )
        assert (delivery.replicas("chat"), delivery.replicas("code")) == (3, 2)

        delivery.publish("chat", "code", replicas=3)
        delivery.brought("model-code", "check-code")
        assert delivery.replicas("code") == 3

    def test_an_api_server_that_goes_away_in_the_middle_of_a_delivery(self, delivery: Delivery) -> None:
        delivery.publish("chat", replicas=2)
        delivery.brought("model-chat", "check-chat")
        before = {key: uid for key, uid in uids(delivery).items() if key[1] == "chat"}
        fetched = delivery.flux.revision

        delivery.store("chat", "code", "draft", replicas=3)
        until(lambda: "model-code" in delivery.flux.kustomizations(), "the first object of the delivery")
        delivery.plane.restart_server()

        until(lambda: delivery.flux.revision != fetched, "the bucket's new revision")
        delivery.brought(*(f"{part}-{name}" for part in ("model", "check") for name in WEIGHTS))
        assert delivery.deployments == set(WEIGHTS)
        assert {delivery.replicas(each) for each in WEIGHTS} == {3}
        assert before.items() <= uids(delivery).items()
