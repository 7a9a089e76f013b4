"""Every object of every environment is accepted by a real API server, and its pods are created by the real
controllers: Pod Security, quotas and priorities hold for them."""

from __future__ import annotations

import os

import pytest

from tests.cluster.cluster import Cluster, named
from tests.cluster.trees import in_order, planned, rendered
from tests.cluster.workloads import foreign_pods, refusal, runs_of, settled
from tests.contract.conftest import NAMES

NOWHERE = {"eks.amazonaws.com/v1"}
"""EKS Auto Mode's own kinds, whose CRDs AWS publishes nowhere."""


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_accepted_and_every_pod_created(cluster: Cluster, name: str) -> None:
    items = [item for item in rendered(planned(name)) if cluster.known(item)]
    spaces = [item for item in cluster.with_namespaces(items) if item["kind"] == "Namespace"]
    cluster.put(spaces)

    refused = {named(item): found for item in items if (found := cluster.dry_run(item))}
    assert refused == {}

    cluster.put(items)
    cluster.put(in_order(runs_of(items)))
    assert settled(cluster.api) == []
    assert [refusal(cluster.api, pod) for pod in foreign_pods(items)] == [None for _ in foreign_pods(items)]


@pytest.mark.parametrize("name", NAMES)
def test_no_kind_goes_unchecked(installed: Cluster, name: str) -> None:
    if "MODELYARD_CRDS" not in os.environ:
        pytest.skip("MODELYARD_CRDS names no folder: some custom resources are not checked")

    unknown = {item["apiVersion"] for item in rendered(planned(name)) if not installed.known(item)}

    assert unknown <= NOWHERE


@pytest.mark.parametrize("name", ["prod", "serving"])
def test_a_tree_that_is_applied_again_changes_nothing(cluster: Cluster, name: str) -> None:
    items = [item for item in rendered(planned(name)) if cluster.known(item) and item["kind"] != "Job"]
    cluster.put(items)
    before = [cluster.api.apply(item)["metadata"]["resourceVersion"] for item in items if _still(item)]

    after = [cluster.api.apply(item)["metadata"]["resourceVersion"] for item in items if _still(item)]

    assert after == before


def _still(item: dict[str, object]) -> bool:
    """Nobody else writes its status, which is a new version too."""
    return item["kind"] not in {
        "Deployment",
        "PodDisruptionBudget",
        "ResourceQuota",
        "DaemonSet",
        "Namespace",
    }
