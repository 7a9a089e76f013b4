"""`modelyard destroy-plan`: what would be deleted, what blocks that, and what could not be checked."""

from __future__ import annotations

import json

import pytest

from tests.account.conftest import Project
from tests.account.fake_account import Error, FakeAccount, denied
from tests.operations.conftest import ARN, exists, stacks
from tests.operations.fake_kubernetes import FakeKubernetes

PLAN = ("destroy-plan", "--env", "lab")
GONE = Error("ResourceNotFoundException", "No cluster found for name: modelyard-lab.")
RETAINED = {
    "Key": {"Type": "AWS::KMS::Key", "DeletionPolicy": "Retain"},
    "Files": {"Type": "AWS::EFS::FileSystem", "DeletionPolicy": "RetainExceptOnCreate"},
    "Role": {"Type": "AWS::IAM::Role"},
    "Topic": {"Type": "AWS::SNS::Topic", "DeletionPolicy": "Delete"},
}


def test_a_busy_cluster_is_listed_step_by_step_and_refused(project: Project, lab: FakeKubernetes) -> None:
    answer = project.run(*PLAN)

    assert answer.code == 1
    steps = ["delivery", "models", "load balancers", "node pools", "node classes", "add-ons", "Karpenter"]
    places = [answer.out.index(f" {step} ") for step in steps]
    assert places == sorted(places)
    assert "refuses: the stacks must not be destroyed yet" in answer.out
    assert "run `modelyard drain --env lab`" in answer.out
    for name in (
        "NodeClaim g6e-1",
        "NodeClaim g6e-2",
        "NodePool g6e",
        "EC2NodeClass g6e",
        "Gateway gateways/internal",
    ):
        assert f"    {name}" in answer.out
    assert lab.requests == []


def test_the_document_has_every_object_and_why(project: Project, lab: FakeKubernetes) -> None:
    document = json.loads(project.run(*PLAN, "--output", "json").out)

    assert document["kind"] == "DestroyPlan"
    assert document["exists"] is True
    assert document["leftovers"] is None  # in use, as long as the cluster exists
    assert document["notChecked"] == []
    [pools] = [step for step in document["steps"] if step["step"] == "node pools"]
    assert pools["objects"][1] == {
        "kind": "NodeClaim",
        "namespace": None,
        "name": "g6e-1",
        "finalizers": ["karpenter.sh/termination"],
    }
    assert "NodeClaim g6e-1" in document["refuses"]
    assert not [name for name in document["refuses"] if name.startswith(("Pod", "Deployment", "HelmRelease"))]


def test_a_drained_cluster_may_go(project: Project, lab: FakeKubernetes) -> None:
    project.run("drain", "--env", "lab", "--yes")

    answer = project.run(*PLAN)

    assert answer.code == 0
    assert "refuses" not in answer.out


def test_stacks_come_in_the_order_of_their_deletion_with_what_protects_them(
    project: Project, lab: FakeKubernetes, fake: FakeAccount
) -> None:
    names = ["modelyard-lab-network", "modelyard-lab-cluster", "modelyard-lab-delivery"]
    stacks(fake, *names, "modelyard-lab-2-network", "modelyard-prod-network", **RETAINED)
    exists(fake, deletionProtection=True)

    said = project.run(*PLAN).out
    document = json.loads(project.run(*PLAN, "--output", "json").out)

    assert [stack["name"] for stack in document["stacks"]] == names[::-1]
    assert document["stacks"][0]["retains"] == ["AWS::EFS::FileSystem", "AWS::KMS::Key"]
    assert document["stacks"][0]["terminationProtection"] is True
    assert (
        "aws cloudformation update-termination-protection --no-enable-termination-protection "
        "--stack-name modelyard-lab-cluster --region ap-northeast-1"
    ) in said
    assert "aws eks update-cluster-config --no-deletion-protection --name modelyard-lab" in said
    assert "modelyard-lab-2" not in said


class TestNotChecked:
    def test_a_cluster_that_does_not_answer_leaves_the_question_open(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.url = "http://127.0.0.1:9"
        lab.kubeconfig(project.folder / "kubeconfig", ARN)

        answer = project.run(*PLAN)

        assert answer.code == 2
        assert "not checked: delivery: the cluster does not answer" in answer.out
        assert "may be destroyed" not in answer.out

    def test_no_kubeconfig_does_too(
        self, project: Project, lab: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(project.folder / "none"))

        answer = project.run(*PLAN)

        assert answer.code == 2
        assert "aws eks update-kubeconfig --name modelyard-lab --region ap-northeast-1" in answer.out

    def test_one_kind_that_is_forbidden_leaves_its_step_open_and_the_others_are_told(
        self, project: Project, lab: FakeKubernetes
    ) -> None:
        lab.refused = {"gateways"}

        answer = project.run(*PLAN)

        assert answer.code == 1
        assert (
            "not checked: load balancers: the cluster answered 403 to list gateways.gateway.networking.k8s.io"
            in (answer.out)
        )
        assert "NodeClaim g6e-1" in answer.out

    def test_a_context_of_another_cluster_is_a_mistake(self, project: Project, lab: FakeKubernetes) -> None:
        lab.kubeconfig(project.folder / "kubeconfig", ARN + "-2", context="other")

        answer = project.run(*PLAN, "--context", "other")

        assert answer.code == 1
        assert "context other is of" in answer.err

    def test_stacks_that_iam_hides_are_named(
        self, project: Project, lab: FakeKubernetes, fake: FakeAccount
    ) -> None:
        project.run("drain", "--env", "lab", "--yes")
        fake.answers["cloudformation:DescribeStacks"] = denied("cloudformation:DescribeStacks")

        answer = project.run(*PLAN)

        assert answer.code == 2
        assert "stacks: needs cloudformation:DescribeStacks" in answer.out


def test_a_cluster_that_is_gone_is_not_asked(
    project: Project, lab: FakeKubernetes, fake: FakeAccount
) -> None:
    fake.answers["eks:DescribeCluster"] = GONE
    stacks(fake, "modelyard-lab-network")

    answer = project.run(*PLAN)

    assert answer.code == 0
    assert "there is no cluster modelyard-lab" in answer.out
    assert "the stacks may be destroyed: cdk destroy --all -c env=lab" in answer.out
    assert lab.answered == []


def test_without_lightkube_the_error_names_the_extra(
    project: Project, lab: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "lightkube", None)

    for command in (PLAN, ("drain", "--env", "lab", "--yes")):
        answer = project.run(*command)

        assert answer.code == 1
        assert "lightkube is not installed" in answer.err
        assert "needs the extra modelyard[cluster]" in answer.err
        assert answer.err.count("\n") == 1
