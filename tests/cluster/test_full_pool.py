"""At the smallest limit that the plan accepts, updates end, and nothing is launched beyond it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import karpenter
from tests.cluster.player import playing
from tests.cluster.programs import until
from tests.cluster.small_plans import PAIR, SINGLE, small_plan
from tests.cluster.test_disruption import claims, deployment, ready_pods, served
from tests.cluster.test_karpenter import put

_LOADING = 3  # seconds

_UPDATE = {"spec": {"template": {"metadata": {"annotations": {"example.com/update": "2"}}}}}


@pytest.mark.parametrize("limit", [4, 3])
def test_updates_end_in_a_full_pool_with_the_downtime_of_the_plan_and_further_replicas_wait(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, limit: int
) -> None:
    """Both models at once, with room for one pod more and with none: a new pod comes before an old one goes,
    or after it."""
    plan = small_plan(limit=limit)
    rollouts = {model.name: model.rollout for model in plan.models}
    assert rollouts[SINGLE].interrupts == (limit == 3)
    with (
        plane.client() as kubelets,
        playing(kubelets, nodes=True) as player,
        karpenter(plane, plan, tmp_path) as (ec2, program),
    ):
        put(cluster, plan)
        served(cluster, program, **{PAIR: 2, SINGLE: 1})
        player.loading = _LOADING
        least = {PAIR: 2, SINGLE: 1}

        def updated() -> bool:
            program.check()
            for name, before in [*least.items()]:
                least[name] = min(before, len(ready_pods(cluster, name)))
            return all(_is_updated(cluster, name) for name in least)

        for name in least:
            cluster.api.merge(deployment(name), _UPDATE)
        until(updated, "both updates", seconds=180)
        assert least == {PAIR: 2 - rollouts[PAIR].max_unavailable, SINGLE: 1 - rollouts[SINGLE].interrupts}

        cluster.api.scale(deployment(PAIR), limit + 2)
        until(lambda: "exceed limits for nodepool" in _said(cluster), "what Karpenter says", seconds=120)
        served(cluster, program, **{PAIR: limit - 1, SINGLE: 1})

        assert len(claims(cluster)) == limit
    assert len(ec2.launched) == limit


def _is_updated(cluster: Cluster, name: str) -> bool:
    item = cluster.api.get("apps/v1", "Deployment", name, "models")
    assert item is not None
    status, wanted = item["status"], item["spec"]["replicas"]
    counts = {status.get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")}
    return status["observedGeneration"] == item["metadata"]["generation"] and counts == {wanted}


def _said(cluster: Cluster) -> str:
    """Of Karpenter about pods."""
    events: list[Object] = cluster.api.list("v1", "Event")
    return "\n".join(event["message"] for event in events if event["reason"] == "FailedScheduling")
