"""What goes wrong with nodes and with Karpenter itself: nothing is lost, and nothing is paid twice."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import karpenter
from tests.cluster.player import playing
from tests.cluster.programs import until
from tests.cluster.small_plans import PAIR, SINGLE, small_plan
from tests.cluster.test_disruption import claims, ready_pods, served
from tests.cluster.test_karpenter import put


def test_nodes_that_ec2_takes_back_or_that_vanish_are_replaced(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """First by a notice of two minutes, which is enough for the pod to be moved by its budget; then without,
    by a notice that it is gone."""
    plan = small_plan(capacity=["spot", "on-demand"])
    with (
        plane.client() as kubelets,
        playing(kubelets, nodes=True) as player,
        karpenter(plane, plan, tmp_path) as (ec2, program),
    ):
        put(cluster, plan)
        before = served(cluster, program, **{PAIR: 2, SINGLE: 1})
        assert {each.get("InstanceLifecycle") for each in ec2.running()} == {"spot"}
        [taken, *_] = before[PAIR].values()
        [instance] = [each for each in ec2.running() if each["PrivateDnsName"] == taken]
        ec2.notices.spot_interruption(instance["InstanceId"])
        serving: list[int] = []

        def moved() -> bool:
            serving.append(len(ready_pods(cluster, PAIR)))
            return taken not in claims(cluster) and _is_gone(cluster, taken)

        until(moved, "the end of the node that is taken back", seconds=120)
        after = served(cluster, program, **{PAIR: 2, SINGLE: 1})
        assert min(serving) >= 1
        assert taken not in after[PAIR].values()
        assert after[SINGLE] == before[SINGLE]
        assert instance["State"]["Name"] == "terminated"

        [vanished] = after[SINGLE].values()
        player.silent.add(vanished)
        ec2.notices.end(ec2.vanish(vanished)["InstanceId"])
        until(lambda: _is_gone(cluster, vanished), "the end of the node that vanished", seconds=120)
        for pod in cluster.api.list("v1", "Pod", "models"):
            if pod["spec"].get("nodeName") == vanished:  # its collector comes a minute after the node went
                cluster.api.delete(pod, at_once=True)
        last = served(cluster, program, **{PAIR: 2, SINGLE: 1})

        assert last[PAIR] == after[PAIR]
        assert {each["PrivateDnsName"] for each in ec2.running()} >= {
            *last[PAIR].values(),
            *last[SINGLE].values(),
        }
    assert ec2.notices.read == 2
    assert program.complaints() == set()


def test_karpenter_killed_in_the_middle_of_a_launch_leaves_no_instance_behind(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """EC2 has launched, and who asked does not live to hear it: the next one asks again, and ends what
    belongs to no NodeClaim."""
    plan = small_plan()
    orphans: list[dict[str, Any]] = []
    with (
        plane.client() as kubelets,
        playing(kubelets, nodes=True),
        karpenter(plane, plan, tmp_path) as (ec2, program),
    ):

        def kill(instance: dict[str, Any]) -> None:
            instance["LaunchTime"] -= timedelta(minutes=1)  # it gives new ones half a minute
            orphans.append(instance)
            program.kill()

        ec2.before_answer = kill
        put(cluster, plan)
        until(lambda: orphans, "the first launch", seconds=120)
        ec2.before_answer = None
        program.start()

        served(cluster, program, **{PAIR: 2, SINGLE: 1})
        until(lambda: _as_claimed(cluster, ec2.running()), "an instance for each NodeClaim", seconds=120)

    assert [each["State"]["Name"] for each in orphans] == ["terminated"] * len(orphans)
    assert len(orphans) >= 1


def _is_gone(cluster: Cluster, node: str) -> bool:
    return cluster.api.get("v1", "Node", node) is None


def _as_claimed(cluster: Cluster, running: list[dict[str, Any]]) -> bool:
    claimed = {item["status"].get("providerID", "").rpartition("/")[2] for item in claims(cluster).values()}
    return claimed == {each["InstanceId"] for each in running}
