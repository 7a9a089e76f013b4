"""`modelyard drain` before a real API server and the real Karpenter: nothing that costs money is left, and
nothing of others is gone."""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from pathlib import Path

import pytest

from modelyard.live.api.kubernetes import open_cluster
from modelyard.live.clusters.drain import ClusterDrain
from modelyard.planning import Plan
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, named, namespace
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import karpenter
from tests.cluster.player import playing
from tests.cluster.small_plans import PAIR, SINGLE, small_plan
from tests.cluster.test_disruption import served
from tests.cluster.test_karpenter import put
from tests.cluster.trees import planned

_POOL = ("NodePool", "EC2NodeClass")


def drained(plan: Plan) -> list[str]:
    """What the command says."""
    said: list[str] = []
    with closing(open_cluster(plan.environment, "tests", foreign=True)) as live:
        ClusterDrain(live, said.append, within_s=120, every_s=1).run(plan.environment)
    return said


def of_others(items: list[Object]) -> list[Object]:
    """A pool and a server that another team has, made of ours."""
    theirs = [namespace("research")]
    for item in items:
        if item["kind"] in _POOL and item["metadata"]["name"] == "g6e":
            copy = deepcopy(item)
            copy["metadata"] = {"name": "research"}
            if item["kind"] == "NodePool":
                copy["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "research"
            theirs.append(copy)
    pod = {"containers": [{"name": "notebook", "image": "registry.example/notebook"}]}
    labels = {"app": "notebook"}
    theirs.append(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "notebook", "namespace": "research"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )
    return theirs


@pytest.mark.parametrize("shared", [False, True], ids=["own cluster", "cluster of others"])
def test_no_node_is_left_and_nothing_of_others_is_gone(
    plane: ControlPlane,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shared: bool,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig("administrator")))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    plan = planned("shared") if shared else small_plan()
    with (
        plane.client() as kubelets,
        playing(kubelets, nodes=True),
        karpenter(plane, plan, tmp_path) as (ec2, program),
    ):
        items = put(cluster, plan)
        theirs = of_others(items) if shared else []
        cluster.put(theirs)
        if not shared:  # the played account has no subnets of others
            served(cluster, program, **{PAIR: 2, SINGLE: 1})
            assert ec2.running()

        said = drained(plan)

        program.check()
        assert ec2.running() == []
        assert cluster.api.list("karpenter.sh/v1", "NodeClaim") == []
        left = {item["metadata"]["name"] for item in cluster.api.list("karpenter.sh/v1", "NodePool")}
        assert left == ({"research"} if shared else set())
        assert cluster.api.list("apps/v1", "Deployment", plan.environment.namespace) == []
        for item in theirs:
            where = item["metadata"].get("namespace", "")
            found = cluster.api.get(item["apiVersion"], item["kind"], item["metadata"]["name"], where)
            assert found, named(item)
            assert not found["metadata"].get("deletionTimestamp"), named(item)
    assert said[-1].endswith(("done", "nothing there")), said
