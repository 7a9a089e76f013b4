"""Karpenter replaces and gives back nodes, and never takes more of a model than its plan allows."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, condition
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import Karpenter, karpenter
from tests.cluster.player import playing
from tests.cluster.programs import until
from tests.cluster.small_plans import PAIR, POOL, SINGLE, small_plan
from tests.cluster.test_karpenter import put

_NEW_LABEL = {
    "spec": {
        "template": {"metadata": {"labels": {"example.com/wave": "2"}}},
        "disruption": {"budgets": [{"nodes": "1"}]},  # at any time of the day, not from 02:00 to 04:00
    }
}
_LOADING = 15
"""Seconds; longer than Karpenter takes from one drifted node to the next, so that the budget of the model has
to hold it back."""
_SOON = {"spec": {"disruption": {"consolidateAfter": "1s"}}}


def ready_pods(cluster: Cluster, model: str) -> dict[str, str]:
    """Pod that serves to its node."""
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in cluster.api.list("v1", "Pod", "models")
        if pod["metadata"]["labels"].get("app.kubernetes.io/instance") == model
        and not pod["metadata"].get("deletionTimestamp")
        and condition(pod, "Ready") == "True"
        and "nodeName" in pod["spec"]
    }


def claims(cluster: Cluster) -> dict[str, Object]:
    """Node to its NodeClaim, of those that are not going."""
    return {
        item["status"].get("nodeName", ""): item
        for item in cluster.api.list("karpenter.sh/v1", "NodeClaim")
        if not item["metadata"].get("deletionTimestamp") and "status" in item
    }


def served(cluster: Cluster, program: Karpenter, **replicas: int) -> dict[str, dict[str, str]]:
    """The pods of each model, once as many serve as its plan has."""

    def all_ready() -> dict[str, dict[str, str]]:
        program.check()
        found = {model: ready_pods(cluster, model) for model in replicas}
        return found if all(len(found[model]) == count for model, count in replicas.items()) else {}

    return until(all_ready, "ready pods", seconds=120)


def test_nodes_that_drifted_are_replaced_one_by_one_once_their_pods_have_loaded(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """The pool gets another label. A replica of two serves all the time; a model that is still loading keeps
    its node. After that, an empty node is given back, and one that serves is not."""
    plan = small_plan(strict=True)
    with (
        plane.client() as kubelets,
        playing(kubelets, nodes=True) as player,
        karpenter(plane, plan, tmp_path) as (ec2, program),
    ):
        player.old.add(PAIR)
        put(cluster, plan)
        before = served(cluster, program, **{PAIR: 2, SINGLE: 1})
        [loading] = before[SINGLE].values()
        pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": POOL}}
        player.loading = _LOADING
        cluster.api.merge(pool, _NEW_LABEL)

        serving: list[int] = []

        def replaced() -> bool:
            program.check()
            now = ready_pods(cluster, PAIR)
            serving.append(len(now))
            return len(now) == 2 and not {*before[PAIR].values()} & {*now.values(), *claims(cluster)}

        until(replaced, "other nodes for the pair", seconds=180)
        assert min(serving) >= 1
        assert ready_pods(cluster, SINGLE) == before[SINGLE]
        assert condition(claims(cluster)[loading], "Drifted") == "True"

        cluster.api.merge(pool, _SOON)
        cluster.api.scale(deployment(PAIR), 1)
        left = served(cluster, program, **{PAIR: 1})[PAIR]

        until(lambda: {*left.values(), loading} == {*claims(cluster)}, "an empty node less", seconds=120)

        until(lambda: len(ec2.running()) == 2, "the end of its instance", seconds=60)
    assert program.complaints() == set()


def deployment(name: str) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "models"}}
