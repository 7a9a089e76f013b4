"""`modelyard validate --context`: a cluster's own API server judges what it does not keep."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from typing import Any

import pytest

from modelyard.cli.main import main
from modelyard.live.api.kubernetes import open_cluster
from modelyard.live.clusters.acceptance import Acceptance, accepted_by
from modelyard.objects.composition import default_objects
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, changed, namespace
from tests.cluster.control_plane import ControlPlane
from tests.cluster.trees import in_order, planned
from tests.contract.conftest import ROOT
from tests.contract.mutations import MODEL, POD

CONTEXT = "tests"
_BROUGHT_FIRST = ("Namespace", "PriorityClass", "ServiceAccount")


@pytest.fixture(autouse=True)
def kubeconfig(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig("administrator")))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def tree(environment: str) -> list[Object]:
    """As files have them: what Flux fills in is not filled in."""
    return in_order(item for items in default_objects(planned(environment)).values() for item in items)


def judged(objects: list[Object]) -> Acceptance:
    with closing(open_cluster(planned("prod").environment, CONTEXT, foreign=True)) as cluster:
        return accepted_by(cluster, objects)


def bring(cluster: Cluster, objects: list[Object]) -> None:
    """What a dry run does not bring for those that refer to it."""
    cluster.put(item for item in cluster.with_namespaces(objects) if item["kind"] in _BROUGHT_FIRST)


def test_nothing_is_kept_and_everything_is_accepted(cluster: Cluster) -> None:
    objects = tree("prod")
    bring(cluster, objects)
    before = cluster.api.list("apps/v1", "Deployment") + cluster.api.list("karpenter.sh/v1", "NodePool")

    found = judged(objects)

    assert found.refused == []
    assert not found.unasked
    workloads = [item for item in objects if item["kind"] in {"Deployment", "Job", "CronJob"}]
    assert found.accepted == len(objects) + len(workloads)
    assert before == []
    assert cluster.api.list("apps/v1", "Deployment") == []
    assert cluster.api.list("karpenter.sh/v1", "NodePool") == []


@pytest.mark.parametrize(
    ("kind", "name", "path", "value", "says"),
    [
        ("Deployment", MODEL, (*POD, "hostNetwork"), True, 'its pod: .*violates PodSecurity "restricted'),
        ("NodePool", "g6e", ("spec", "disruption", "consolidationPolicy"), "Sometimes", "Unsupported value"),
        ("Service", MODEL, ("spec", "ports", 0, "port"), 100000, "between 1 and 65535"),
    ],
)
def test_what_a_server_would_refuse_is_told(
    cluster: Cluster, kind: str, name: str, path: tuple[Any, ...], value: object, says: str
) -> None:
    objects = tree("prod")
    bring(cluster, objects)
    [planted] = [
        changed(item, path, value)
        for item in objects
        if (item["kind"], item["metadata"]["name"]) == (kind, name)
    ]

    found = judged([planted])

    assert [item["metadata"]["name"] for item, _ in found.refused] == [name]
    assert re.search(says, found.refused[0][1]), found.refused


def test_what_cannot_be_judged_yet_is_counted_and_not_passed(cluster: Cluster) -> None:
    """A namespace that is gone; the tests' control plane keeps those of other tests."""
    objects = [
        changed(item, ("metadata", "namespace"), "elsewhere")
        for item in tree("prod")
        if item["kind"] == "Deployment"
    ]

    found = judged(objects)

    assert found.accepted == 0
    assert found.refused == []
    assert sum(found.unasked.values()) == 2 * len(planned("prod").models)


def test_what_the_user_may_not_ask_is_counted_and_not_passed(
    cluster: Cluster, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = "system:serviceaccount:flux-system:source-controller"
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
    subject = {"kind": "User", "name": reader, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    objects = tree("prod")
    bring(cluster, objects)
    cluster.put(
        [
            rbac | {"kind": "ClusterRole", "rules": rules},
            rbac | {"kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]},
        ]
    )
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig(reader)))

    found = judged([item for item in objects if item["kind"] == "Service"])

    assert (found.accepted, found.refused) == (0, [])
    assert set(found.unasked) == {"the user of the context may not patch services"}


def test_a_cluster_of_others_is_asked_when_its_owner_has_marked_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never the current context, and never one by mistake."""

    def validate(context: str) -> tuple[int, str]:
        folders = ["--models", str(ROOT / "models"), "--environments", str(ROOT / "environments")]
        command = ["modelyard", "validate", "--env", "prod", *folders, "--context", context]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out + told.err

    bring(cluster, tree("prod"))
    system = namespace("kube-system")
    mark = {"modelyard.dev/environment": "prod"}

    before = validate(CONTEXT)
    cluster.api.merge(system, {"metadata": {"labels": mark}})
    try:
        after = validate(CONTEXT)
    finally:
        cluster.api.merge(system, {"metadata": {"labels": dict.fromkeys(mark)}})

    assert before[0] == 1
    assert "kubectl --context tests label namespace kube-system modelyard.dev/environment=prod" in before[1]
    assert after[0] == 0, after[1]
    assert validate("nowhere")[0] == 1
