"""The real Karpenter launches what the plan names, and gives everything back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from modelyard.planning import ModelPlan, Plan
from modelyard.planning import plan as make_plan
from modelyard.project import load_project
from modelyard.spec import Environment
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, changed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.karpenter import Karpenter, karpenter
from tests.cluster.nodes import verdicts
from tests.cluster.programs import until
from tests.cluster.trees import planned, rendered
from tests.cluster.workloads import settled
from tests.contract.conftest import folders_of

UNPLAYED = ("Job", "CronJob", "DaemonSet")
_POOL, _RESOURCE = "g6e", "nvidia.com/gpu"


def put(cluster: Cluster, plan: Plan) -> list[Object]:
    """Everything of the plan that asks for nodes of its pools."""
    items = [item for item in rendered(plan) if cluster.known(item) and item["kind"] not in UNPLAYED]
    cluster.put(items)
    assert settled(cluster.api) == []
    return items


def placed(cluster: Cluster, plan: Plan, program: Karpenter) -> dict[str, str]:
    """Pod to its node, once every pod has one."""
    last: dict[str, tuple[str, str]] = {}

    def all_placed() -> bool:
        program.check()
        last.clear()
        last.update(verdicts(cluster.api, plan.environment.namespace))
        return bool(last) and all(node for node, _ in last.values())

    until(
        all_placed,
        "nodes for the pods",
        seconds=120,
        lacking=lambda: [pod for pod, (node, _) in last.items() if not node],
    )
    return {pod: node for pod, (node, _) in last.items()}


def servers(cluster: Cluster, plan: Plan) -> Iterator[tuple[ModelPlan, Object]]:
    """Each pod of a server, with the plan of its model."""
    models = {model.name: model for model in plan.models}
    for pod in cluster.api.list("v1", "Pod", plan.environment.namespace):
        labels = pod["metadata"]["labels"]
        if labels["app.kubernetes.io/component"] == "server":
            yield models[labels["app.kubernetes.io/instance"]], pod


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_every_replica_gets_the_type_of_its_plan(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """The cheapest that fits, and Karpenter allows none that the plan does not."""
    plan = planned(name)
    with karpenter(plane, plan, tmp_path) as (ec2, program):
        put(cluster, plan)
        where = placed(cluster, plan, program)
        on = {each["PrivateDnsName"]: each for each in ec2.launched}
        differing = {}
        for model, pod in servers(cluster, plan):
            got = on[where[pod["metadata"]["name"]]]
            expected = model.placement.cheapest.name
            fitting = {each.name for each in model.placement.instance_types}
            if got["InstanceType"] != expected or not ec2.allowed[got["InstanceId"]] <= fitting:
                differing[model.name] = (
                    got["InstanceType"],
                    expected,
                    ec2.allowed[got["InstanceId"]] - fitting,
                )

    assert differing == {}
    assert program.complaints() == set()
    assert {model.name for model, _ in servers(cluster, plan)} >= {
        model.name for model in plan.models if model.model.replicas.min and not model.model.batch
    }


def test_what_nobody_asks_for_any_more_is_given_back(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """As `modelyard drain` does: first the models, then the pools; no NodeClaim and no instance is left."""
    plan = planned("dev")
    with karpenter(plane, plan, tmp_path) as (ec2, program):
        items = put(cluster, plan)
        placed(cluster, plan, program)
        assert ec2.running()

        for kind in ("Deployment", "NodePool"):
            for item in items:
                if item["kind"] == kind:
                    cluster.api.delete(item)

        def gone() -> bool:
            program.check()
            for pod in cluster.api.list("v1", "Pod"):
                if pod["metadata"].get("deletionTimestamp"):  # waits for a kubelet
                    cluster.api.delete(pod, at_once=True)
            return not cluster.api.list("karpenter.sh/v1", "NodeClaim")

        until(gone, "the end of the NodeClaims", seconds=300)

        assert ec2.running() == []
        assert [node for node in cluster.api.list("v1", "Node") if "i-0" in node["metadata"]["name"]] == []


def test_a_zone_without_capacity_is_left_for_another(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    plan = planned("prod")
    reserved = {zone for pool in plan.environment.pools.values() if pool.reservations for zone in pool.zones}
    [empty, *_] = [zone for zone in plan.environment.availability_zones if zone not in reserved]
    with karpenter(plane, plan, tmp_path) as (ec2, program):
        ec2.exhausted.add(("*", empty))
        put(cluster, plan)

        placed(cluster, plan, program)

    assert empty not in {each["Placement"]["AvailabilityZone"] for each in ec2.launched}


def test_a_limit_that_the_plan_refuses_leaves_pods_pending(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    """Planted: the pool holds one accelerator, and its models ask for more.

    They come one after the other: Karpenter counts a node once EC2 has launched it, and may overrun a limit
    for pods that come before.
    """
    plan = planned("dev")
    assert any(finding.code == "CAP002" for finding in _limited(plan).findings)
    first = next(model.name for model in plan.models if model.placement.pool_name == _POOL)
    items = [
        _with_limit(item) for item in rendered(plan) if cluster.known(item) and item["kind"] not in UNPLAYED
    ]
    deployments = [item for item in items if item["kind"] == "Deployment"]
    with karpenter(plane, plan, tmp_path) as (ec2, program):
        cluster.put(item for item in items if item["kind"] != "Deployment")
        cluster.put(
            changed(item, ("spec", "replicas"), 1)
            for item in deployments
            if item["metadata"]["name"] == first
        )
        assert settled(cluster.api) == []
        [(there, _)] = placed(cluster, plan, program).items()

        cluster.put(deployments)
        assert settled(cluster.api) == []
        waiting = {
            pod["metadata"]["name"]
            for model, pod in servers(cluster, plan)
            if model.placement.pool_name == _POOL
        } - {there}
        assert waiting

        def unanswered() -> set[str]:
            program.check()
            return waiting - {
                event["involvedObject"]["name"]
                for event in cluster.api.list("v1", "Event")
                if "exceed limits for nodepool" in event["message"]
            }

        until(lambda: not unanswered(), "what Karpenter says of the pods", seconds=300, lacking=unanswered)
        nodes = verdicts(cluster.api, plan.environment.namespace)

    assert {name for name in waiting if nodes[name][0]} == set()
    assert [each["InstanceType"] for each in ec2.launched if _pool_of(each) == _POOL] == ["g6e.xlarge"]


def _with_limit(item: Object) -> Object:
    if (item["kind"], item["metadata"]["name"]) == ("NodePool", _POOL):
        return changed(item, ("spec", "limits"), {_RESOURCE: "1"})
    return item


def _limited(plan: Plan) -> Plan:
    data = plan.environment.model_dump(mode="json")
    data["pools"][_POOL]["limit"] = 1
    folders = folders_of(plan.environment.name)
    catalogue = load_project(plan.environment.name, *folders).catalogue
    return make_plan(catalogue, Environment.model_validate(data))


def _pool_of(instance: Object) -> str:
    return next(str(tag["Value"]) for tag in instance["Tags"] if tag["Key"] == "karpenter.sh/nodepool")
