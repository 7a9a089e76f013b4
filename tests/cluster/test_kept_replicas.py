"""A Deployment keeps its replicas on the day its fixed number becomes a range, in a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.objects.composition import checked_objects
from modelyard.objects.platform.kept_replicas import kept_replicas
from modelyard.objects.tree import tree_contents
from tests.cluster.api import Api, Object, Refused
from tests.cluster.cluster import Cluster
from tests.cluster.programs import until
from tests.cluster.trees import in_order, read
from tests.unit.given import a_model, a_plan, an_environment

NAME = "qwen"


def tree(replicas: object, version: str = "1.36") -> list[Object]:
    """What belongs to the one model, as it is rendered."""
    environment = an_environment(cluster={"version": version})
    folders = checked_objects(a_plan(a_model(replicas=replicas), environment=environment))
    return in_order(read(tree_contents({name: folders[name] for name in ("platform", f"models/{NAME}")})))


def server(items: list[Object]) -> Object:
    [found] = [item for item in items if item["kind"] == "Deployment"]
    return found


def replicas(api: Api) -> Any:
    stored = api.get("apps/v1", "Deployment", NAME, "models")
    assert stored is not None
    return stored["spec"]["replicas"]


def given(cluster: Cluster, *, policy: str) -> None:
    """Four fixed replicas, and the policy of a Kubernetes version; "" for none."""
    items = [item for item in tree(4) if cluster.known(item) and "AdmissionPolicy" not in item["kind"]]
    cluster.put(items)
    if policy:
        cluster.put([*kept_replicas(policy)])
        until(lambda: in_force(cluster, policy), "the policy in force")


def in_force(cluster: Cluster, policy: str) -> bool:
    """The API server obeys policies a moment after they are stored, and a moment longer than they are
    there: it is asked about another object."""
    probe = {
        **server(tree({"min": 2, "max": 6})),
        "metadata": {**server(tree({"min": 2, "max": 6}))["metadata"], "name": "probe"},
    }
    if cluster.api.get("apps/v1", "Deployment", "probe", "models") is None:
        cluster.put([{**probe, "spec": {**probe["spec"], "replicas": 3}}])
    try:
        answer = cluster.api.apply({**probe, "spec": {**probe["spec"], "replicas": 2}}, dry_run=True)
    except Refused:
        return policy == "1.35"
    return policy == "1.36" and bool(answer["spec"]["replicas"] == 3)


def test_without_the_policy_it_starts_again_from_one(cluster: Cluster) -> None:
    given(cluster, policy="")

    cluster.put([server(tree({"min": 2, "max": 6}))])

    assert replicas(cluster.api) == 1


def test_it_keeps_the_number_that_it_had(cluster: Cluster) -> None:
    given(cluster, policy="1.36")

    cluster.put([server(tree({"min": 2, "max": 6}))])

    assert replicas(cluster.api) == 4


@pytest.mark.parametrize("wanted", [2, 6])
def test_the_autoscaler_is_free(cluster: Cluster, wanted: int) -> None:
    given(cluster, policy="1.36")
    cluster.put([server(tree({"min": 2, "max": 6}))])

    cluster.api.scale(server(tree(4)), wanted)

    assert replicas(cluster.api) == wanted


def test_a_fixed_number_may_be_lowered(cluster: Cluster) -> None:
    given(cluster, policy="1.36")

    cluster.put([server(tree(2))])

    assert replicas(cluster.api) == 2


def test_an_older_server_refuses_until_its_command_was_run(cluster: Cluster) -> None:
    given(cluster, policy="1.35")
    ranged = server(tree({"min": 2, "max": 6}))

    with pytest.raises(Refused, match="would start again from 1 of 4 replicas; hand them over first"):
        cluster.put([ranged])

    handed = {key: ranged[key] for key in ("apiVersion", "kind")}
    handed["metadata"] = {"name": NAME, "namespace": "models"}
    handed["spec"] = {"replicas": 4}
    cluster.api.apply(handed, manager="modelyard-handover", force=False)
    cluster.put([ranged])
    assert replicas(cluster.api) == 4
