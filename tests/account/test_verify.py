"""`modelyard verify` with moto's buckets and parameters: how the pods' reports are judged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from modelyard.live.verification import waiting
from tests.account.conftest import REGION, Project
from tests.account.fake_account import FakeAccount, denied
from tests.unit.given import Answer

VERIFY = ("verify", "--env", "lab")
TREE, REPORTS = "modelyard-lab-tree", "modelyard-lab-reports"
ASSUME = "sts:AssumeRole"


@dataclass
class Cluster:
    """Plays the cluster: its pods report, and time passes when somebody waits for them."""

    s3: Any
    tree: Path
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    plans: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        for when, act in self.plans:
            if self.now - seconds < when <= self.now:
                act()

    @property
    def job(self) -> str:
        """Name of the one job."""
        (path,) = (self.tree / "checks").rglob("job-*.yaml")
        return path.stem.removeprefix("job-")

    def report(self, pod: str, *failing: str) -> None:
        """The smoke test of one pod, in which the checks `failing` failed."""
        checks = [{"name": name, "outcome": "failed", "reason": "HTTP 500 [/x]"} for name in failing]
        document = {"kind": "Smoke", "passed": not failing, "checks": checks, "time": f"{self.now:09.0f}"}
        self.s3.put_object(Bucket=REPORTS, Key=f"{self.job}/{pod}.json", Body=json.dumps(document))

    def later(self, when: float, pod: str, *failing: str) -> None:
        """The same after `when` seconds."""
        self.plans.append((when, lambda: self.report(pod, *failing)))


@pytest.fixture
def cluster(project: Project, fake: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Environment `lab` as it was deployed, with one model that nobody has asked yet."""
    stack = {
        "StackStatus": "CREATE_COMPLETE",
        "EnableTerminationProtection": True,
        "Tags": [{"Key": "modelyard:environment", "Value": "lab"}],
    }
    active = {"status": "ACTIVE", "health": {"issues": []}}
    fake.answers |= {
        "cloudformation:DescribeStacks": {
            "Stacks": [
                {"StackName": f"modelyard-lab-{concern}", "CreationTime": "2026-11-21T10:00:00Z", **stack}
                for concern in ("network", "cluster", "delivery")
            ]
        },
        "eks:DescribeCluster": {"cluster": {"name": "modelyard-lab", "version": "1.36", **active}},
        "eks:ListNodegroups": {"nodegroups": ["system"]},
        "eks:DescribeNodegroup": {"nodegroup": {"nodegroupName": "system", **active}},
        "eks:ListAddons": {"addons": ["vpc-cni"]},
        "eks:DescribeAddon": {"addon": {"addonName": "vpc-cni", **active}},
    }
    assert project.run("render", "--env", "lab").code == 0
    tree = project.folder / "dist" / "lab"
    session = fake.session(region_name=REGION)
    s3, ssm = session.client("s3"), session.client("ssm")
    for key, bucket in (("bucket", TREE), ("reports", REPORTS)):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        ssm.put_parameter(Name=f"/modelyard/lab/delivery/{key}", Value=bucket, Type="String")
    for path in (path for path in tree.rglob("*") if path.is_file()):
        s3.put_object(Bucket=TREE, Key=path.relative_to(tree).as_posix(), Body=path.read_bytes())
    made = Cluster(s3, tree)
    for function in (waiting.wait, waiting.renewed):
        assert function.__kwdefaults__
        monkeypatch.setitem(function.__kwdefaults__, "clock", made.clock)
    assert waiting.wait.__kwdefaults__
    monkeypatch.setitem(waiting.wait.__kwdefaults__, "sleep", made.sleep)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 100)  # moto takes its time for each
    fake.asked.clear()
    return made


def last(answer: Answer) -> str:
    return answer.out.splitlines()[-1]


def models(project: Project, *options: str) -> tuple[int | str | None, dict[str, Any], dict[str, Any]]:
    """Exit code, the whole document, and its check of the models."""
    answer = project.run(*VERIFY, "--output", "json", *options)
    document = json.loads(answer.out)
    (check,) = (each for each in document["checks"] if each["check"] == "models")
    return answer.code, document, check


def test_a_model_that_answered(project: Project, cluster: Cluster) -> None:
    cluster.report("a")

    answer = project.run(*VERIFY)
    code, document, check = models(project)

    assert (answer.code, last(answer)) == (0, "ok: 1 of 1 models answered")
    assert (code, document["outcome"], document["passed"]) == (0, "passed", True)
    assert check == {
        "check": "models",
        "outcome": "passed",
        "passed": True,
        "seen": "1 of 1 models answered",
        "problems": [],
        "pending": [],
        "look": [],
    }


def test_a_model_that_nobody_has_asked_yet_is_no_failure_and_no_success(
    project: Project, cluster: Cluster
) -> None:
    answer = project.run(*VERIFY)
    code, document, check = models(project)

    assert (answer.code, last(answer)) == (0, "pending: 0 of 1 models answered; 1 job pending")
    assert (code, document["outcome"], document["passed"]) == (0, "pending", False)
    assert (check["outcome"], check["passed"]) == ("pending", False)
    assert check["pending"] == [f"qwen: {cluster.job} has not reported"]
    assert cluster.pauses == []


def test_a_model_that_failed_in_every_attempt(project: Project, cluster: Cluster) -> None:
    for pod in "abc":
        cluster.report(pod, "chat", "streaming")

    answer = project.run(*VERIFY)
    code, document, check = models(project)

    assert (answer.code, last(answer)) == (1, "1 check failed: 0 of 1 models answered")
    assert (code, document["outcome"], document["passed"]) == (1, "failed", False)
    assert check["problems"] == [
        f"qwen: every attempt of {cluster.job} failed, the last with chat: HTTP 500 [/x]; streaming: HTTP 500 [/x]"
    ]
    assert check["look"] == [f"kubectl -n models logs job/{cluster.job}"]
    assert f"Look closer:\n    kubectl -n models logs job/{cluster.job}\n" in answer.out


def test_a_model_that_answered_in_the_second_attempt(project: Project, cluster: Cluster) -> None:
    cluster.report("a", "chat")
    assert last(project.run(*VERIFY)) == "pending: 0 of 1 models answered; 1 job pending"

    cluster.report("b")
    assert last(project.run(*VERIFY)) == "ok: 1 of 1 models answered"


def test_a_model_that_came_back_is_asked_again(project: Project, cluster: Cluster) -> None:
    """Its job has the name of before, and so have its reports; the bucket of the tree knows that it was
    gone."""
    cluster.s3.put_bucket_versioning(Bucket=TREE, VersioningConfiguration={"Status": "Enabled"})
    file = f"checks/qwen/job-{cluster.job}.yaml"
    body = (cluster.tree / file).read_bytes()
    cluster.report("a")
    cluster.s3.put_object(Bucket=TREE, Key=file, Body=body)  # delivered once more, which is no other job
    assert last(project.run(*VERIFY)) == "ok: 1 of 1 models answered"

    cluster.s3.delete_object(Bucket=TREE, Key=file)
    cluster.s3.put_object(Bucket=TREE, Key=file, Body=body)
    assert last(project.run(*VERIFY)) == "pending: 0 of 1 models answered; 1 job pending"

    time.sleep(1.1)  # S3 tells whole seconds
    cluster.report("b")
    assert last(project.run(*VERIFY)) == "ok: 1 of 1 models answered"


class TestWaiting:
    def test_it_ends_when_the_model_has_answered(self, project: Project, cluster: Cluster) -> None:
        cluster.later(1000, "a", "chat")
        cluster.later(2000, "b")

        answer = project.run(*VERIFY, "--wait", "150m")

        assert (answer.code, last(answer)) == (0, "ok: 1 of 1 models answered")
        assert cluster.now == 2000
        said = answer.err.splitlines()
        assert said == [
            "lab: waiting, for 150 min at the most",
            f"    qwen: {cluster.job} has not reported",
            "lab: waiting, for 133 min at the most",
            f"    qwen: 1 of 3 attempts of {cluster.job} failed: chat: HTTP 500 [/x]",
        ]

    def test_it_ends_when_the_model_has_failed_for_good(self, project: Project, cluster: Cluster) -> None:
        for number, pod in enumerate("abc"):
            cluster.later(100 * (number + 1), pod, "chat")

        answer = project.run(*VERIFY, "--wait", "150m")

        assert (answer.code, last(answer)) == (1, "1 check failed: 0 of 1 models answered")
        assert cluster.now == 300

    def test_it_ends_when_the_time_is_over(self, project: Project, cluster: Cluster) -> None:
        code, document, check = models(project, "--wait", "2m")

        assert (code, document["outcome"]) == (1, "failed")
        assert sum(cluster.pauses) == 120
        assert check["problems"] == [f"qwen: {cluster.job} has not reported"]
        assert check["look"] == [
            "kubectl -n flux-system get kustomizations",
            f"kubectl -n models logs job/{cluster.job}",
        ]
        assert check["pending"] == []

    def test_a_tree_that_was_not_delivered_is_not_waited_for(
        self, project: Project, cluster: Cluster
    ) -> None:
        cluster.s3.delete_object(Bucket=TREE, Key="kustomization.yaml")

        answer = project.run(*VERIFY, "--wait", "2h")

        assert answer.code == 1
        assert "kustomization.yaml was not delivered" in answer.out
        assert last(answer) == "1 check failed: 0 of 1 models answered; 1 job pending"
        assert cluster.pauses == []

    def test_an_add_on_that_mends_is(self, project: Project, cluster: Cluster, fake: FakeAccount) -> None:
        cluster.report("a")
        mended = fake.answers["eks:DescribeAddon"]
        fake.answers["eks:DescribeAddon"] = {"addon": {"addonName": "vpc-cni", "status": "DEGRADED"}}
        cluster.plans.append((200, lambda: fake.answers.update({"eks:DescribeAddon": mended})))

        answer = project.run(*VERIFY, "--wait", "2h")

        assert (answer.code, last(answer)) == (0, "ok: 1 of 1 models answered")
        assert cluster.now == 200

    def test_the_role_is_assumed_again_before_its_hour_is_over(
        self, project: Project, cluster: Cluster, fake: FakeAccount
    ) -> None:
        cluster.later(7000, "a")

        assert project.run(*VERIFY, "--wait", "150m").code == 0

        assumed = [asked["RoleArn"] for permission, asked in fake.asked if permission == ASSUME]
        role = f"cdk-hnb659fds-lookup-role-123456789012-{REGION}"
        assert assumed == [f"arn:aws:iam::123456789012:role/{role}"] * 4  # 7000 s in halves of an hour

    def test_with_the_shells_credentials_no_role_is(
        self, project: Project, cluster: Cluster, fake: FakeAccount
    ) -> None:
        cluster.later(7000, "a")

        assert project.run(*VERIFY, "--wait", "150m", "--own-credentials").code == 0
        assert ASSUME not in fake.permissions


def test_reports_that_may_not_be_read_are_an_error(
    project: Project, cluster: Cluster, fake: FakeAccount
) -> None:
    cluster.report("a")
    fake.answers["ssm:GetParameter"] = denied("ssm:GetParameter")

    answer = project.run(*VERIFY)

    assert answer.code == 1
    (line,) = answer.err.splitlines()
    assert line.startswith("modelyard: lab: ")
    assert "not authorized to perform: ssm:GetParameter" in line


def test_where_argo_delivers_the_last_line_does_not_speak_of_reports(
    project: Project, cluster: Cluster
) -> None:
    project.environment(
        delivery="none",
        cache={"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"},
    )

    assert last(project.run(*VERIFY)) == (
        "ok: seen from outside; the jobs of `checks` in the cluster ask the models themselves"
    )
