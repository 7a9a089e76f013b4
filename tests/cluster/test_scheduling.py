"""The real scheduler and the plan agree on which nodes a model's pods fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from modelyard.hardware import instance_types
from modelyard.planning import ModelPlan, Plan
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import general_node, node, register, verdicts
from tests.cluster.programs import until
from tests.cluster.trees import planned, rendered
from tests.cluster.workloads import pod_of, settled
from tests.contract.mutants import catch
from tests.contract.mutations import MODEL, POD, SERVER, Mutation

_TOO_SMALL = re.compile(r"has [\d.]+ .*(of \d+ |needed)")
"""What the scheduler sees as well; offers and prices are Karpenter's business."""


def template_of(item: Object) -> dict[str, Any]:
    spec = item["spec"]
    if item["kind"] == "LeaderWorkerSet":
        group = spec["leaderWorkerTemplate"]
        found: dict[str, Any] = group.get("leaderTemplate") or group["workerTemplate"]
        return found
    found = (spec["jobTemplate"]["spec"] if item["kind"] == "CronJob" else spec)["template"]
    return found


def servers(items: list[Object], model: ModelPlan) -> Object:
    """The workload that serves the model, or works through its batch."""
    [found] = [
        item
        for item in items
        if item["kind"] in {"Deployment", "LeaderWorkerSet", "CronJob", "Job"}
        and item["metadata"]["labels"].get("app.kubernetes.io/component") in {"server", "batch"}
        and item["metadata"]["labels"]["app.kubernetes.io/instance"] == model.name
    ]
    return found


def nailed(item: Object, host: str) -> Object:
    """A pod of the workload that may run on one node alone."""
    pod = deepcopy(pod_of(item, template_of(item), host))
    pod["metadata"]["name"] = host
    for field in ("affinity", "topologySpreadConstraints"):
        pod["spec"].pop(field, None)
    pod["spec"]["nodeSelector"] = {**pod["spec"].get("nodeSelector", {}), "kubernetes.io/hostname": host}
    return pod


def expected(model: ModelPlan) -> Iterator[tuple[str, bool]]:
    """Instance types, and whether the plan says that a pod fits a node of it."""
    for each in model.placement.instance_types:
        yield each.name, True
    for refused in model.placement.rejections:
        if "where" in refused.reason and "suffice" in refused.reason:
            yield refused.instance_type, True
        elif _TOO_SMALL.match(refused.reason) and instance_types()[refused.instance_type].allocatable_memory:
            yield refused.instance_type, False


def store(cluster: Cluster, name: str, *without: str) -> list[Object]:
    """Everything but `without`, and its claims bound."""
    items = [item for item in rendered(planned(name)) if cluster.known(item)]
    cluster.put([item for item in items if item["kind"] not in without])
    until(
        lambda: all(
            claim.get("status", {}).get("phase") == "Bound"
            for claim in cluster.api.list("v1", "PersistentVolumeClaim")
        ),
        "bound claims",
    )
    return items


@pytest.mark.parametrize("name", ["prod", "serving"])
def test_a_pod_fits_the_nodes_that_the_plan_says(cluster: Cluster, name: str) -> None:
    plan = planned(name)
    zone = plan.environment.availability_zones[0]
    items = store(cluster, name, "Deployment", "Job", "CronJob", "LeaderWorkerSet", "DaemonSet")
    said: dict[str, bool] = {}
    for model in plan.models:
        for kind, fits in expected(model):
            host = f"{model.name}-{kind.replace('.', '-')}"
            register(cluster.api, node(host, instance_types()[kind], plan, model.placement.pool_name, zone))
            cluster.api.create(nailed(servers(items, model), host))
            said[host] = fits

    found = verdicts(cluster.api, plan.environment.namespace)

    differing = {host: found[host] for host, fits in said.items() if bool(found[host][0]) != fits}
    assert differing == {}
    assert {True, False} <= set(said.values())


def planned_nodes(plan: Plan) -> Iterator[Object]:
    """For each model the cheapest type for every replica in each zone, and one of each type it refuses."""
    zones = plan.environment.availability_zones
    for model in plan.models:
        place = model.placement
        for number in range(model.model.replicas.max * model.serving.nodes):
            for zone in zones:
                yield node(f"{model.name}-{number}-{zone}", place.cheapest, plan, place.pool_name, zone)
        for kind, _ in expected(model):
            if kind not in {each.name for each in place.instance_types}:
                host = f"{model.name}-{kind.replace('.', '-')}"
                yield node(host, instance_types()[kind], plan, place.pool_name, zones[0])
    for zone in zones:
        yield general_node(f"general-{zone}", zone)


def test_every_pod_lands_on_a_type_of_its_plan(cluster: Cluster) -> None:
    plan = planned("prod")
    types = {}
    for item in planned_nodes(plan):
        register(cluster.api, item)
        types[item["metadata"]["name"]] = item["metadata"]["labels"].get("node.kubernetes.io/instance-type")
    store(cluster, "prod", "DaemonSet")
    assert settled(cluster.api) == []

    found = verdicts(cluster.api, plan.environment.namespace)

    assert {pod: why for pod, (host, why) in found.items() if not host} == {}
    allowed = {model.name: {each.name for each in model.placement.instance_types} for model in plan.models}
    for pod in cluster.api.list("v1", "Pod", plan.environment.namespace):
        labels = pod["metadata"]["labels"]
        if labels["app.kubernetes.io/component"] == "server":
            host = types[pod["spec"]["nodeName"]]
            assert host in allowed[labels["app.kubernetes.io/instance"]], pod["metadata"]["name"]


@pytest.mark.parametrize(
    ("mutation", "words"),
    [
        (
            Mutation(
                "wrong prefix of a label",
                "Deployment",
                MODEL,
                (*POD, "nodeSelector"),
                {"karpenter.k8s.aws/nodepool": "g6e"},
            ),
            "didn't match Pod's node affinity/selector",
        ),
        (
            Mutation(
                "hugepages that no node has",
                "Deployment",
                MODEL,
                (*SERVER, "resources", "limits", "hugepages-2Mi"),
                "5128Mi",
            ),
            "Insufficient hugepages-2Mi",
        ),
        (
            Mutation(
                "type that the plan refuses",
                "Deployment",
                MODEL,
                (*SERVER, "resources", "requests", "memory"),
                "44Gi",
            ),
            "Insufficient memory",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Mutation) else "",
)
def test_a_planted_mistake_leaves_the_pods_pending(cluster: Cluster, mutation: Mutation, words: str) -> None:
    plan, whole = given(cluster)
    cluster.put([whole])
    assert settled(cluster.api) == []
    assert all(host for host, _ in verdicts(cluster.api, plan.environment.namespace).values())
    cluster.api.delete(whole)
    until(lambda: not _pods_left(cluster, plan), "the end of the pods")

    cluster.put(mutation.applied([whole]))
    assert settled(cluster.api) == []

    found = verdicts(cluster.api, plan.environment.namespace)
    assert found
    assert {host for host, _ in found.values()} == {""}
    assert all(words in why for _, why in found.values()), found


@pytest.mark.parametrize(("taint", "fits"), [("nvidia.com/gpu", True), ("accelerator", False)])
def test_a_pod_tolerates_the_taint_that_is_called_as_its_resource(
    cluster: Cluster, taint: str, fits: bool
) -> None:
    """As on EKS, admission adds that toleration to a pod without one; any other taint keeps it away."""
    plan, whole = given(cluster, taint)

    cluster.put(Mutation("", "Deployment", MODEL, (*POD, "tolerations")).applied([whole]))
    assert settled(cluster.api) == []

    found = verdicts(cluster.api, plan.environment.namespace)
    assert {bool(host) for host, _ in found.values()} == {fits}


@pytest.mark.parametrize(("environment", "fits"), [("prod", True), ("shared", False)])
def test_gpu_pods_of_others_do_not_get_nodes_of_pools_in_their_own_cluster(
    cluster: Cluster, environment: str, fits: bool
) -> None:
    """The real admission plug-in lets each of them tolerate the taint of its resource."""
    plan = planned(environment)
    kind = instance_types()["g6e.xlarge"]
    register(cluster.api, node("node", kind, plan, "g6e", plan.environment.availability_zones[0]))
    of_others = {
        "image": "registry.example/notebook",
        "name": "notebook",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "notebook", "namespace": "research"},
        "spec": {"containers": [of_others], "serviceAccountName": "notebook"},
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "notebook", "namespace": "research"},
    }

    cluster.put([account, pod])

    [(host, _)] = verdicts(cluster.api, "research").values()
    assert bool(host) is fits


CPU = "chat-cpu"
_TAINT = {"key": "modelyard.dev/models-on-cpu", "operator": "Equal", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("mutation", "words"),
    [
        (
            Mutation(
                *("wrong value of a taint", "Deployment", CPU, (*POD, "tolerations", 0)),
                {**_TAINT, "value": "false"},
                "serving",
            ),
            "had untolerated taint",
        ),
        (
            Mutation(
                *("wrong prefix of a label", "Deployment", CPU, (*POD, "nodeSelector")),
                {"karpenter.k8s.aws/nodepool": "graviton"},
                "serving",
            ),
            "didn't match Pod's node affinity/selector",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Mutation) else "",
)
def test_the_rules_and_the_scheduler_find_the_same_mistake(
    cluster: Cluster, mutation: Mutation, words: str
) -> None:
    """On nodes without GPUs, where admission adds no toleration."""
    assert catch(mutation) is not None
    plan = planned("serving")
    [model] = [model for model in plan.models if model.name == CPU]
    items = store(cluster, "serving", "Deployment", "Job", "CronJob", "LeaderWorkerSet", "DaemonSet")
    whole = servers(items, model)
    right = Mutation("", "Deployment", CPU, (*POD, "tolerations", 0), {**_TAINT, "value": "true"})
    place, zone = model.placement, plan.environment.availability_zones[0]
    for number in range(2):
        register(cluster.api, node(f"node-{number}", place.cheapest, plan, place.pool_name, zone))

    [one] = right.applied([whole])
    [other] = mutation.applied([whole])
    for pod, name in ((one, "right"), (other, "wrong")):
        cluster.api.create(
            pod_of({**pod, "metadata": {**pod["metadata"], "name": name}}, template_of(pod), "1")
        )

    found = verdicts(cluster.api, plan.environment.namespace)
    assert found["right-1"][0]
    assert found["wrong-1"][0] == ""
    assert words in found["wrong-1"][1]


def given(cluster: Cluster, taint: str = "nvidia.com/gpu") -> tuple[Plan, Object]:
    """A plan, one workload of it, and a node of the planned type for each replica, with this taint."""
    plan = planned("prod")
    [model] = [model for model in plan.models if model.name == MODEL]
    items = store(cluster, "prod", "Deployment", "Job", "CronJob", "DaemonSet")
    place, zones = model.placement, plan.environment.availability_zones
    for number in range(model.model.replicas.max):
        item = node(f"node-{number}", place.cheapest, plan, place.pool_name, zones[number])
        item["spec"]["taints"] = [{"key": taint, "value": "x", "effect": "NoSchedule"}]
        register(cluster.api, item)
    return plan, servers(items, model)


def _pods_left(cluster: Cluster, plan: Plan) -> bool:
    pods = cluster.api.list("v1", "Pod", plan.environment.namespace)
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            cluster.api.delete(pod, at_once=True)
    return bool(pods)
