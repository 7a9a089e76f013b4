"""`modelyard upgrade-plan`: one minor at a time, and no upgrade starts that cannot finish."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from modelyard.live.clusters import upgrade
from modelyard.releases import Chart, kubectl
from tests.account.conftest import Project
from tests.account.fake_account import Error, FakeAccount, denied
from tests.operations.conftest import exists
from tests.unit.given import Answer

ROOT = Path(__file__).parents[2]
PLAN = ("upgrade-plan", "--env", "lab", "--to", "1.36")
ALONE = (*PLAN, "--from", "1.35")
KUBE_PROXY = "v1.35.3-eksbuild.13"


def insight(status: str, reason: str) -> dict[str, Any]:
    return {
        "id": "a1b2",
        "name": "Deprecated APIs",
        "category": "UPGRADE_READINESS",
        "kubernetesVersion": "1.36",
        "insightStatus": {"status": status, "reason": reason},
    }


@pytest.fixture
def ready(project: Project, fake: FakeAccount) -> FakeAccount:
    """A cluster of 1.35 that may go on."""
    project.environment(cluster={"version": "1.35"})
    exists(fake, version="1.35")
    fake.answers |= {
        "eks:ListAddons": {"addons": ["kube-proxy"]},
        "eks:DescribeAddon": {
            "addon": {"addonName": "kube-proxy", "addonVersion": KUBE_PROXY, "status": "ACTIVE"}
        },
        "eks:ListInsights": {"insights": [insight("PASSING", "")]},
        "ssm:GetParameter": {
            "Parameter": {"Name": "x", "Value": "ami-1", "LastModifiedDate": datetime.now(UTC)}
        },
        "cloudformation:GetTemplate": {"TemplateBody": json.dumps(template("1.35"))},
    }
    synthesised(project, template("1.36"))
    return fake


def template(version: str, **changes: Any) -> dict[str, Any]:
    """The stack of the cluster, as far as its system nodes go."""
    group = {
        "Version": version,
        "ReleaseVersion": f"{version}.6-20260714",
        "InstanceTypes": ["m7g.large"],
        "LaunchTemplate": {
            "Id": {"Ref": "Launch"},
            "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
        },
        "Tags": {"modelyard:environment": "lab"},
    }
    disk = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": changes.pop("disk", 50)}}
    launch = {"LaunchTemplateData": {"BlockDeviceMappings": [disk]}}
    return {
        "Resources": {
            "Launch": {"Type": "AWS::EC2::LaunchTemplate", "Properties": launch},
            "Nodes": {"Type": "AWS::EKS::Nodegroup", "Properties": {**group, **changes}},
        }
    }


def synthesised(project: Project, content: dict[str, Any], stack: str = "modelyard-lab-cluster") -> None:
    """What `cdk diff` leaves behind."""
    folder = project.folder / "cdk.out"
    folder.mkdir(exist_ok=True)
    properties = {"templateFile": "Cluster.template.json", "stackName": stack}
    artifact = {"type": "aws:cloudformation:stack", "properties": properties}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": {"Cluster": artifact}}))
    (folder / "Cluster.template.json").write_text(json.dumps(content))


def said(answer: Answer) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(answer.out)
    return document


class TestSteps:
    def test_a_cluster_that_is_ready_is_told_the_order(self, project: Project, ready: FakeAccount) -> None:
        answer = project.run(*PLAN)
        document = said(project.run(*PLAN, "--output", "json"))

        assert answer.code == 0, answer.out
        assert [step["step"] for step in document["steps"]] == [
            "edit",
            "control plane",
            "add-ons",
            "system nodes",
            "Karpenter's nodes",
            "kubectl",
        ]
        assert 'environments/lab.yaml: cluster: {version: "1.36"}' in answer.out
        assert f"kube-proxy {KUBE_PROXY} to v1.36.0-eksbuild.13" in answer.out
        assert "al2023@v20260714" in answer.out
        assert "cdk deploy --all -c env=lab" in answer.out
        assert "standard support of 1.35 ends in" in answer.out

    def test_without_an_account_the_plan_is_the_same_but_for_what_runs(
        self, project: Project, fake: FakeAccount
    ) -> None:
        answer = project.run(*ALONE)

        assert answer.code == 0, answer.err
        assert f"kube-proxy {KUBE_PROXY} to v1.36.0-eksbuild.13" in answer.out
        assert fake.asked == []

    def test_auto_mode_has_no_system_nodes_and_no_images_of_ours(
        self, project: Project, ready: FakeAccount
    ) -> None:
        project.environment(cluster={"version": "1.35", "compute": "auto-mode"})

        document = said(project.run(*PLAN, "--output", "json"))

        assert "nodes" in [step["step"] for step in document["steps"]]
        assert "ssm:GetParameter" not in ready.permissions

    def test_dev_and_staging_go_before_a_strict_environment(
        self, project: Project, ready: FakeAccount
    ) -> None:
        folder = project.folder / "environments"
        lab = json.loads((folder / "lab.yaml").read_text())
        for name, version in (("dev", "1.36"), ("staging", "1.35")):
            (folder / f"{name}.yaml").write_text(json.dumps({**lab, "cluster": {"version": version}}))
        project.environment(policy="strict", cluster={"version": "1.35"})

        document = said(project.run(*PLAN, "--output", "json"))

        assert document["steps"][0] == {
            "step": "before",
            "what": "staging is at 1.35 in their files: they go first",
        }

    def test_a_version_that_runs_already_needs_nothing(self, project: Project, ready: FakeAccount) -> None:
        exists(ready, version="1.36")

        answer = project.run(*PLAN)

        assert answer.code == 0
        assert "runs Kubernetes 1.36 already" in answer.out
        assert "cdk deploy" not in answer.out


class TestObstacles:
    @pytest.mark.parametrize(
        ("current", "target", "reason", "fix"),
        [
            ("1.34", "1.36", "1.34 to 1.36 skips 1.35", "modelyard upgrade-plan --to 1.35"),
            ("1.33", "1.35", "skips 1.34", "aws eks update-cluster-version --name modelyard-lab"),
            ("1.36", "1.35", "1.35 is older than 1.36", "stay where you are"),
            ("1.36", "1.37", "1.37 is not among 1.35, 1.36", "take a release of Modelyard"),
        ],
    )
    def test_a_way_that_eks_does_not_go_is_refused(
        self, project: Project, current: str, target: str, reason: str, fix: str
    ) -> None:
        answer = project.run("upgrade-plan", "--env", "lab", "--from", current, "--to", target)

        assert answer.code == 1
        assert reason in answer.out
        assert fix in answer.out
        assert "cdk deploy" not in answer.out

    def test_a_karpenter_that_is_too_old_is_in_the_way_but_not_in_auto_mode(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upgrade, "chart", lambda name: Chart(name, "oci://x", "1.9.2"))

        answer = project.run(*ALONE)
        project.environment(cluster={"compute": "auto-mode"})

        assert answer.code == 1
        assert "Karpenter 1.9.2 does not know Kubernetes 1.36" in answer.out
        assert project.run(*ALONE).code == 0

    def test_a_kubectl_two_minors_away_is_in_the_way(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upgrade, "kubectl", lambda: "1.34")

        assert "kubectl is 1.34, 2 minors from 1.36" in project.run(*ALONE).out

    def test_what_eks_knows_of_the_cluster_is_in_the_way(self, project: Project, ready: FakeAccount) -> None:
        broken = {
            "addonName": "kube-proxy",
            "addonVersion": KUBE_PROXY,
            "status": "DEGRADED",
            "health": {"issues": [{"code": "InsufficientNumberOfReplicas", "message": "no node"}]},
        }
        ready.answers["eks:DescribeAddon"] = {"addon": broken}
        ready.answers["eks:ListInsights"] = {
            "insights": [
                insight("ERROR", "flowschemas v1beta3 is asked for"),
                insight("WARNING", "kubelet skew"),
            ]
        }
        ready.answers["ssm:GetParameter"] = Error("ParameterNotFound")
        exists(ready, version="1.35", status="UPDATING")

        document = said(answer := project.run(*PLAN, "--output", "json"))

        assert answer.code == 1
        reasons = [each["reason"] for each in document["obstacles"]]
        assert reasons[0] == "the cluster is UPDATING"
        assert reasons[1] == "add-on kube-proxy is DEGRADED: no node"
        assert reasons[2] == "EKS insight 'Deprecated APIs': flowschemas v1beta3 is asked for"
        folder = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023"
        for reason, place in zip(reasons[3:], ("arm64/standard", "x86_64/nvidia"), strict=True):
            build = f"amazon-eks-node-al2023-{place.replace('/', '-')}-1.36-v20260714"
            assert f": {folder}/{place}/{build}/image_id does not exist" in reason
        assert document["notes"] == ["EKS insight 'Deprecated APIs': kubelet skew"]
        assert document["steps"] == []

    def test_insights_are_asked_for_the_target(self, project: Project, ready: FakeAccount) -> None:
        project.run(*PLAN)

        [asked] = [asked for permission, asked in ready.asked if permission == "eks:ListInsights"]
        assert asked["filter"] == {"categories": ["UPGRADE_READINESS"], "kubernetesVersions": ["1.36"]}


class TestSystemNodes:
    """CloudFormation refuses a node group's new version beside any other change (aws-cdk issue 13602)."""

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"disk": 80}, "launch template"),
            ({"Tags": {"modelyard:environment": "lab", "team": "ml"}}, "tags"),
            ({"Labels": {"a": "b"}, "ScalingConfig": {"MinSize": 3}}, "labels, number"),
        ],
    )
    def test_a_change_beside_the_version_is_in_the_way_and_goes_first(
        self, project: Project, ready: FakeAccount, changes: dict[str, Any], words: str
    ) -> None:
        synthesised(project, template("1.36", **changes))

        answer = project.run(*PLAN)

        assert answer.code == 1
        assert f"the next deploy also changes the system nodes' {words}; EKS refuses that" in answer.out
        assert "deploy that with the present version first: cdk deploy Cluster -c env=lab" in answer.out
        assert "cdk deploy --all" not in answer.out

    def test_a_new_group_is_made_with_everything_at_once(self, project: Project, ready: FakeAccount) -> None:
        synthesised(project, template("1.36", disk=80, InstanceTypes=["m8g.large"]))

        assert project.run(*PLAN).code == 0

    @pytest.mark.parametrize("stack", ["modelyard-prod-cluster", None])
    def test_without_templates_of_this_environment_that_is_open(
        self, project: Project, ready: FakeAccount, stack: str | None
    ) -> None:
        if stack:
            synthesised(project, template("1.36"), stack)
        else:
            (project.folder / "cdk.out" / "manifest.json").unlink()

        answer = project.run(*PLAN)

        assert answer.code == 2
        assert "not checked: other changes of the system nodes" in answer.out
        assert "cdk diff -c env=lab" in answer.out

    def test_a_release_of_another_minor_is_in_the_way(self, project: Project, ready: FakeAccount) -> None:
        nodes = {"releaseVersion": "1.35.6-20260714"}
        project.environment(cluster={"version": "1.35", "systemNodes": nodes})

        answer = project.run(*PLAN)

        assert answer.code == 1
        assert "leave it out to get 1.36.2-20260714" in answer.out


class TestQuestions:
    def test_what_iam_denies_is_left_open_and_named(self, project: Project, ready: FakeAccount) -> None:
        ready.answers["eks:ListInsights"] = denied("eks:ListInsights")

        answer = project.run(*PLAN)

        assert answer.code == 2
        assert "not checked: upgrade insights: needs eks:ListInsights" in answer.out
        assert "cdk deploy --all" in answer.out

    def test_without_a_cluster_the_version_has_to_be_named(
        self, project: Project, ready: FakeAccount
    ) -> None:
        ready.answers["eks:DescribeCluster"] = Error("ResourceNotFoundException")

        answer = project.run(*PLAN)

        assert answer.code == 1
        assert "--from" in answer.err

    @pytest.mark.parametrize("version", ["newest", "1.6", "v1.36", "2.36"])
    def test_what_is_no_minor_is_misuse(self, project: Project, version: str) -> None:
        assert project.run("upgrade-plan", "--env", "lab", "--to", version).code == 64


def test_the_layer_that_installs_flux_has_the_kubectl_of_the_releases() -> None:
    source = ast.parse((ROOT / "constructs/modelyard/aws/flux.py").read_text(encoding="utf-8"))
    modules = [node.module for node in ast.walk(source) if isinstance(node, ast.ImportFrom)]
    [layer] = [name for name in modules if name and name.startswith("aws_cdk.lambda_layer_kubectl_v")]

    assert layer == f"aws_cdk.lambda_layer_kubectl_v{kubectl().partition('.')[2]}"
