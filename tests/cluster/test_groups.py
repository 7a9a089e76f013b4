"""Servers of several nodes: the real LeaderWorkerSet makes, places and restarts each group as one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.lws import lws
from tests.cluster.nodes import node, register
from tests.cluster.player import Player, playing
from tests.cluster.programs import Running, until
from tests.cluster.trees import planned, rendered

NAME = "wide-experts"
_WITHOUT = ("Job", "CronJob", "DaemonSet", "Deployment")
_FROM_THE_CONTROLLER = re.compile(r"\$\((LWS_\w+)\)")


class Groups:
    """A cluster with everything but the pods of one model of two nodes."""

    def __init__(self, cluster: Cluster, program: Running, player: Player) -> None:
        self.api = cluster.api
        self.program = program
        self.player = player
        self.plan = planned("serving")
        [self.model] = [model for model in self.plan.models if model.name == NAME]
        items = [
            item
            for item in rendered(self.plan)
            if cluster.known(item)
            and item["kind"] not in (*_WITHOUT, "LeaderWorkerSet")
            and item["metadata"]["labels"].get("app.kubernetes.io/instance", NAME) == NAME
        ]
        cluster.put(items)
        self._cluster = cluster

    def start(self) -> None:
        """Put the model's group there."""
        [item] = [
            item
            for item in rendered(self.plan)
            if item["kind"] == "LeaderWorkerSet" and item["metadata"]["name"] == NAME
        ]
        self._cluster.put([item])

    def start_on_two_nodes(self) -> None:
        """The group, with a node for each of its pods."""
        for name in ("first", "second"):
            self.add_node(name, self.zones[0])
        self.start()
        self.placed({LEADER, WORKER})

    @property
    def zones(self) -> tuple[str, ...]:
        """Of the pool that the group asks for."""
        environment = self.plan.environment
        return environment.pool_zones(environment.pools[self.model.placement.pool_name])

    def add_node(self, name: str, zone: str) -> None:
        place = self.model.placement
        register(self.api, node(name, place.cheapest, self.plan, place.pool_name, zone))

    def pods(self) -> dict[str, Object]:
        """Of the model, by name."""
        self.program.check()
        return {
            pod["metadata"]["name"]: pod
            for pod in self.api.list("v1", "Pod", self.plan.environment.namespace)
            if pod["metadata"]["labels"].get("app.kubernetes.io/instance") == NAME
        }

    def placed(self, names: set[str]) -> dict[str, str]:
        """Pod to its node, once exactly these have one."""

        def where() -> dict[str, str]:
            return {
                name: pod["spec"]["nodeName"]
                for name, pod in self.pods().items()
                if pod["spec"].get("nodeName")
            }

        until(lambda: set(where()) == names, "the nodes of the group", seconds=120, lacking=self.pods)
        return where()


LEADER, WORKER = f"{NAME}-0", f"{NAME}-0-1"


@pytest.fixture
def groups(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Groups]:
    with (
        lws(plane, cluster, tmp_path) as program,
        plane.client() as another,
        playing(another, nodes=True) as player,
    ):
        yield Groups(cluster, program, player)


def test_a_worker_goes_to_the_zone_of_its_leader(groups: Groups) -> None:
    """EFA does not cross zones: a worker waits for a node there rather than start elsewhere."""
    zone, other, *_ = groups.zones
    groups.add_node("first", zone)
    groups.start()
    assert groups.placed({LEADER}) == {LEADER: "first"}

    groups.add_node("elsewhere", other)
    until(
        lambda: "didn't match pod affinity rules" in _why(groups.pods()[WORKER]),
        "the scheduler's reason",
        seconds=60,
    )
    groups.add_node("second", zone)

    assert groups.placed({LEADER, WORKER}) == {LEADER: "first", WORKER: "second"}


def test_each_pod_knows_its_leader_and_its_place(groups: Groups) -> None:
    """What the arguments name, the kubelet fills in."""
    groups.start()
    until(lambda: {LEADER, WORKER} <= set(groups.pods()), "the pods")

    for name, pod in groups.pods().items():
        [server, *_] = pod["spec"]["containers"]
        told = {each["name"]: each.get("value") for each in server["env"]}
        text = " ".join([*server.get("command", ()), *server.get("args", ())])
        assert set(_FROM_THE_CONTROLLER.findall(text)) <= set(told)
        assert told["LWS_LEADER_ADDRESS"].startswith(f"{LEADER}.{NAME}.")
        assert told["LWS_GROUP_SIZE"] == "2"
        assert pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] == (
            "0" if name == LEADER else "1"
        )


def test_only_the_leader_answers_requests(groups: Groups) -> None:
    groups.start_on_two_nodes()

    def answering() -> set[str]:
        return {
            one["targetRef"]["name"]
            for each in groups.api.list("discovery.k8s.io/v1", "EndpointSlice")
            if each["metadata"]["labels"]["kubernetes.io/service-name"] == NAME
            for one in each.get("endpoints") or []
            if one["conditions"].get("ready")
        }

    until(lambda: LEADER in answering(), "the leader's endpoint")
    assert answering() == {LEADER}


def test_a_group_that_loses_a_worker_starts_again_as_one(groups: Groups) -> None:
    """Ranks that survive would wait for the lost one for ever."""
    groups.start_on_two_nodes()
    before = {name: pod["metadata"]["uid"] for name, pod in groups.pods().items()}

    # As long as its kubelet takes to end it, which the controller has to see.
    groups.player.silent.add(groups.pods()[WORKER]["spec"]["nodeName"])
    groups.api.delete(groups.pods()[WORKER])
    until(lambda: LEADER not in groups.pods() or _ends(groups.pods()[LEADER]), "the end of the leader")
    groups.player.silent.clear()

    def all_new() -> bool:
        now = {name: pod["metadata"]["uid"] for name, pod in groups.pods().items()}
        return set(now) == {LEADER, WORKER} and not set(now.values()) & set(before.values())

    until(all_new, "a new group", seconds=120, lacking=groups.pods)
    assert set(groups.placed({LEADER, WORKER}).values()) == {"first", "second"}


def _ends(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _why(pod: Object) -> str:
    conditions = pod.get("status", {}).get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")
