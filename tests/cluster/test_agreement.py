"""What the plan says of types, prices and room, the real Karpenter does: model by model, in every pool."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.agreement import ENVIRONMENTS, plan_of, verdicts_of
from tests.cluster.agreement_page import PAGE, with_column
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, changed, condition
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import Karpenter, karpenter
from tests.cluster.nodes import verdicts
from tests.cluster.programs import until
from tests.cluster.refusals import REFUSALS, plan_of_all
from tests.cluster.test_karpenter import UNPLAYED, placed, put
from tests.cluster.trees import rendered
from tests.cluster.workloads import settled

_WRITE = "MODELYARD_AGREEMENT"  # set by `make agreement`
_OF_POOLS = ("NodePool", "EC2NodeClass", "NodeOverlay")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_plan_and_karpenter_agree(plane: ControlPlane, cluster: Cluster, tmp_path: Path, name: str) -> None:
    """On the type, on which others would do, on the cheapest of them, and on the room of a node; and what is
    launched stays as it is."""
    plan = plan_of(name)
    put(cluster, plan)
    with karpenter(plane, plan, tmp_path) as (ec2, program):
        placed(cluster, plan, program)
        found = [*verdicts_of(plan, cluster.api, ec2, program.prices())]
        drifted = [
            item["metadata"]["name"] for item in _claims(cluster) if condition(item, "Drifted") == "True"
        ]

    if os.environ.get(_WRITE):
        PAGE.write_text(with_column(PAGE.read_text(encoding="utf-8"), name, found), encoding="utf-8")
    assert {each.model.name: [*each.differences] for each in found if [*each.differences]} == {}
    assert {each.model.name for each in found} == {model.name for model in plan.models}
    assert drifted == []
    assert program.complaints() == set()
    page = PAGE.read_text(encoding="utf-8")
    assert with_column(page, name, found) == page, "run `make agreement`"


def test_karpenter_launches_nothing_for_what_the_plan_refuses(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    whole, refused = plan_of_all(changed=False), plan_of_all(changed=True)
    assert whole.deployable
    assert {(each.code, each.name) for each in REFUSALS} <= {(f.code, f.subject) for f in refused.findings}
    cluster.put(item for item in rendered(refused) if item["kind"] in _OF_POOLS)
    cluster.put(
        _anywhere(item)
        for item in rendered(whole)
        if cluster.known(item) and item["kind"] not in {*UNPLAYED, *_OF_POOLS}
    )
    assert settled(cluster.api) == []
    with karpenter(plane, refused, tmp_path) as (ec2, program):

        def unanswered() -> set[str]:
            program.check()
            answers = _answers(program)
            return {each.name for each in REFUSALS if each.words not in answers.get(each.name, "")}

        until(lambda: not unanswered(), "what Karpenter says of the pods", lacking=unanswered)
        nodes = verdicts(cluster.api, whole.environment.namespace)
        claims = _claims(cluster)

    assert {pod for pod, (node, _) in nodes.items() if node} == set()
    assert [item["metadata"]["name"] for item in claims] == []
    assert [each["InstanceType"] for each in ec2.launched] == []


def _anywhere(item: Object) -> Object:
    """Without the types that the plan names: Karpenter shall judge by room, limit, price and zone."""
    if item["kind"] != "Deployment":
        return item
    return changed(item, ("spec", "template", "spec", "affinity"), None)


def _answers(program: Karpenter) -> dict[str, str]:
    """By model, the last that Karpenter says of its pod: an event stays as it was when the pool was new."""
    return {
        line["Pod"]["name"].rsplit("-", 2)[0]: line["error"]
        for line in program.said()
        if line["message"] == "could not schedule pod"
    }


def _claims(cluster: Cluster) -> list[Object]:
    return cluster.api.list("karpenter.sh/v1", "NodeClaim")
