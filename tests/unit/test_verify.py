"""How `modelyard verify` interprets AWS' answers; tests/e2e runs it against an embedded AWS."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.live.api import aws as live
from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Operation
from modelyard.live.delivery.comparison import HOLD
from modelyard.live.verification.checks import Observation, verify
from modelyard.spec import Environment
from modelyard.writing import MARKER, Ownership, tree_files, write_tree_files
from tests.unit.given import an_environment
from tests.unit.test_existing_cluster import in_shared


class Account(live.Account):
    """Answers of an account in which environment `lab` stands; tests break one of them."""

    def __init__(self, name: str, cluster: str) -> None:
        super().__init__(None, "us-east-2")
        tag = {"Key": "modelyard:environment", "Value": name}
        self.stacks = [
            {
                "StackName": f"modelyard-{name}-{concern}",
                "StackStatus": "CREATE_COMPLETE",
                "EnableTerminationProtection": True,
                "Tags": [tag],
            }
            for concern in ("network", "cluster", "delivery")
        ]
        self.stacks.append({"StackName": "somebody-elses", "StackStatus": "ROLLBACK_COMPLETE", "Tags": []})
        self.cluster: dict[str, Any] | None = {
            "name": cluster,
            "status": "ACTIVE",
            "version": "1.36",
            "resourcesVpcConfig": {"endpointPublicAccess": False},
        }
        self.nodegroups: dict[str, dict[str, Any]] = {
            "system": {"status": "ACTIVE", "health": {"issues": []}}
        }
        self.addons: dict[str, dict[str, Any]] = {"vpc-cni": {"status": "ACTIVE"}}
        self.objects: dict[str, bytes] = {"platform/a.yaml": b"kind: A\n"}
        self.tags: dict[str, str] = {}
        self.parameters = {f"/modelyard/{name}/delivery/{key}": key for key in ("bucket", "reports")}
        self.reports: dict[str, bytes] = {}
        self.written: dict[str, int] = {}
        self.deleted: list[tuple[str, int]] = []

    def report(self, job: str, pod: str, **content: Any) -> None:
        self.reports[f"{job}/{pod}.json"] = json.dumps(content).encode()

    def ask(self, operation: Operation, **asked: Any) -> dict[str, Any]:
        buckets = {"bucket": self.objects, "reports": self.reports}
        match operation.name:
            case "DescribeStacks":
                return {"Stacks": self.stacks}
            case "GetParameter" if asked["Name"] in self.parameters:
                return {"Parameter": {"Value": self.parameters[asked["Name"]]}}
            case "GetParameter":
                raise Refusal("no such parameter", "ParameterNotFound")
            case "DescribeCluster" if self.cluster is not None and self.cluster["name"] == asked["name"]:
                return {"cluster": self.cluster}
            case "DescribeCluster":
                raise Refusal("no such cluster", "ResourceNotFoundException")
            case "ListNodegroups":
                return {"nodegroups": list(self.nodegroups)}
            case "DescribeNodegroup":
                return {"nodegroup": self.nodegroups[asked["nodegroupName"]]}
            case "ListAddons":
                return {"addons": list(self.addons)}
            case "DescribeAddon":
                return {"addon": self.addons[asked["addonName"]]}
            case "ListObjectsV2":
                return {"Contents": self._listed(buckets[asked["Bucket"]])}
            case "ListObjectVersions":
                gone = self.deleted if asked["Bucket"] == "bucket" else []
                below = [each for each in gone if each[0].startswith(asked["Prefix"])]
                return {"DeleteMarkers": [{"Key": key, "LastModified": time} for key, time in below]}
            case "GetObject":
                return {"Body": buckets[asked["Bucket"]][asked["Key"]]}
        raise AssertionError(operation)

    def _listed(self, held: dict[str, bytes]) -> list[dict[str, Any]]:
        tags = {key: hashlib.md5(body).hexdigest() for key, body in held.items()} | self.tags
        return [
            {"Key": key, "ETag": f'"{tag}"', "LastModified": self.written.get(key, 1)}
            for key, tag in tags.items()
        ]


@pytest.fixture
def settings() -> Environment:
    return an_environment()


@pytest.fixture
def account(settings: Environment) -> Account:
    return Account(settings.name, settings.cluster_name)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "platform").mkdir()
    (tmp_path / "platform" / "a.yaml").write_bytes(b"kind: A\n")
    return tmp_path


def problems(answers: list[Observation]) -> dict[str, tuple[str, ...]]:
    return {answer.check: answer.problems for answer in answers if answer.problems}


FROM_OUTSIDE = ["stacks", "cluster", "node groups", "add-ons"]


def test_what_stands_as_it_was_deployed_passes(account: Account, settings: Environment, tree: Path) -> None:
    answers = verify(account, settings, tree)

    assert [answer.check for answer in answers] == [*FROM_OUTSIDE, "tree", "models"]
    assert problems(answers) == {}


def test_auto_mode_needs_no_node_group(account: Account, tree: Path) -> None:
    account.nodegroups.clear()

    answers = verify(account, an_environment(cluster={"compute": "auto-mode"}), tree)

    assert [answer.check for answer in answers] == ["stacks", "cluster", "add-ons", "tree", "models"]
    assert problems(answers) == {}


def _set(where: Callable[[Account], dict[str, Any]], **values: Any) -> Callable[[Account], None]:
    return lambda account: where(account).update(values)


def _cluster(account: Account) -> dict[str, Any]:
    assert account.cluster is not None
    return account.cluster


BROKEN: list[tuple[str, Callable[[Account], Any], str]] = [
    (
        "stacks",
        _set(lambda a: a.stacks[0], StackStatus="UPDATE_ROLLBACK_COMPLETE"),
        "UPDATE_ROLLBACK_COMPLETE",
    ),
    ("stacks", lambda a: a.stacks.pop(1), "no stack"),
    (
        "stacks",
        _set(lambda a: a.stacks[1], EnableTerminationProtection=False),
        "modelyard-lab-cluster has no termination protection",
    ),
    ("cluster", _set(_cluster, status="FAILED"), "FAILED"),
    ("cluster", _set(_cluster, version="1.35"), "runs Kubernetes 1.35, the file says 1.36"),
    ("cluster", _set(_cluster, resourcesVpcConfig={"endpointPublicAccess": True}), "API server is public"),
    (
        "cluster",
        _set(_cluster, health={"issues": [{"code": "Ec2SubnetNotFound", "message": "gone"}]}),
        "Ec2SubnetNotFound: gone",
    ),
    ("node groups", _set(lambda a: a.nodegroups["system"], status="DEGRADED"), "system is DEGRADED"),
    ("node groups", lambda a: a.nodegroups.clear(), "there is none"),
    ("add-ons", _set(lambda a: a.addons["vpc-cni"], status="DEGRADED"), "vpc-cni is DEGRADED"),
    ("add-ons", lambda a: a.addons.clear(), "there is none"),
    ("tree", lambda a: a.objects.update({"platform/a.yaml": b"kind: B\n"}), "differs"),
    ("tree", lambda a: a.objects.clear(), "was not delivered"),
    ("tree", lambda a: a.objects.update(stray=b""), "not rendered any more"),
    ("tree", lambda a: a.parameters.pop("/modelyard/lab/delivery/bucket"), "has no bucket; deploy it again"),
    ("models", lambda a: a.parameters.pop("/modelyard/lab/delivery/reports"), "no bucket for reports"),
]


@pytest.mark.parametrize(("check", "change", "said"), BROKEN)
def test_what_does_not_is_named(
    check: str,
    change: Callable[[Account], Any],
    said: str,
    account: Account,
    settings: Environment,
    tree: Path,
) -> None:
    change(account)
    found = problems(verify(account, settings, tree))

    assert list(found) == [check]
    assert said in " ".join(found[check])


def test_what_others_put_into_the_bucket_is_no_problem_where_a_list_says_what_is_ours(
    account: Account, settings: Environment, tree: Path
) -> None:
    account.objects["notes/mine.txt"] = b"mine"
    assert list(problems(verify(account, settings, tree))) == ["tree"]

    write_tree_files(tree, {Path("platform/a.yaml"): "kind: A\n"})
    account.objects |= tree_files(tree)
    answers = verify(account, settings, tree)
    assert problems(answers) == {}
    assert [each.seen for each in answers if each.check == "tree"] == [
        "2 files in bucket, and 1 that modelyard did not write"
    ]

    account.objects[MARKER] = Ownership.of({Path("notes/mine.txt"): b"mine"}).to_json()
    assert "notes/mine.txt was delivered" in " ".join(problems(verify(account, settings, tree))["tree"])


def test_a_publication_that_has_not_ended_is_named_and_may_pass(
    account: Account, settings: Environment, tree: Path
) -> None:
    account.objects[HOLD] = b"*\n"

    [answer] = [each for each in verify(account, settings, tree) if each.problems]

    assert answer.problems[0].startswith("a publication has begun and has not ended, so Flux applies nothing")
    assert answer.transient


def test_an_object_that_was_uploaded_in_parts_is_read(
    account: Account, settings: Environment, tree: Path
) -> None:
    """Its tag is no hash of its content."""
    account.tags["platform/a.yaml"] = "0123456789abcdef0123456789abcdef-2"
    assert problems(verify(account, settings, tree)) == {}

    account.objects["platform/a.yaml"] = b"kind: B\n"
    assert list(problems(verify(account, settings, tree))) == ["tree"]


def test_without_a_cluster_its_parts_are_not_asked_for(
    account: Account, settings: Environment, tree: Path
) -> None:
    account.cluster = None

    answers = verify(account, settings, tree)

    assert [answer.check for answer in answers] == ["stacks", "cluster", "tree", "models"]
    assert problems(answers) == {"cluster": ("there is no such cluster",)}


def test_what_an_environment_is_called_decides_nothing(tree: Path) -> None:
    """Its name stands in every message, and may be that of a stack."""
    settings = an_environment(name="delivery")
    account = Account(settings.name, settings.cluster_name)
    account.stacks[0]["StackStatus"] = "UPDATE_IN_PROGRESS"

    answers = verify(account, settings, tree)

    assert [answer.check for answer in answers] == [*FROM_OUTSIDE, "tree", "models"]
    assert problems(answers) == {"stacks": ("modelyard-delivery-network is UPDATE_IN_PROGRESS",)}


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", None])
def test_while_the_delivery_stack_does_not_stand_its_bucket_is_not_asked_for(
    status: str | None, account: Account, settings: Environment, tree: Path
) -> None:
    if status is None:
        account.stacks.pop(2)
    else:
        account.stacks[2]["StackStatus"] = status

    answers = verify(account, settings, tree)

    assert [answer.check for answer in answers] == FROM_OUTSIDE
    assert list(problems(answers)) == ["stacks"]


def test_an_empty_tree_is_not_taken_for_a_delivered_one(
    account: Account, settings: Environment, tmp_path: Path
) -> None:
    account.objects.clear()

    assert "nothing is rendered" in " ".join(problems(verify(account, settings, tmp_path))["tree"])


def test_where_flux_does_not_read_a_bucket_there_is_none_to_compare(
    account: Account, settings: Environment, tree: Path
) -> None:
    account.stacks.pop(2)
    none = settings.model_copy(update={"delivery": "none"})

    assert problems(verify(account, none, tree)) == {}


JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  labels:
    modelyard.dev/model: {model}
  name: {name}
  namespace: models
spec:
  backoffLimit: {retries}
"""


@pytest.fixture
def jobs(account: Account, tree: Path) -> Path:
    """Two jobs ask model `chat`, one asks `embed`; the tree is delivered."""
    for model, kind, retries in (("chat", "smoke", 2), ("chat", "bench", 0), ("embed", "smoke", 2)):
        name = f"{model}-{kind}-1a"
        path = tree / "checks" / model / f"job-{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(JOB.format(model=model, name=name, retries=retries))
        account.objects[str(path.relative_to(tree))] = path.read_bytes()
    return tree


def models_of(account: Account, settings: Environment, tree: Path) -> Observation:
    return {answer.check: answer for answer in verify(account, settings, tree)}["models"]


def test_a_model_has_answered_when_every_job_that_asks_it_has_passed(
    account: Account, settings: Environment, jobs: Path
) -> None:
    nobody = models_of(account, settings, jobs)
    account.report("chat-smoke-1a", "a", passed=True)
    account.report("embed-smoke-1a", "a", passed=True)
    some = models_of(account, settings, jobs)
    account.report("chat-bench-1a", "a", passed=True)
    every = models_of(account, settings, jobs)

    assert [each.seen for each in (nobody, some, every)] == [
        "0 of 2 models answered",
        "1 of 2 models answered",
        "2 of 2 models answered",
    ]
    assert [each.outcome for each in (nobody, some, every)] == ["pending", "pending", "passed"]
    assert [str(each) for each in some.pending] == ["chat: chat-bench-1a has not reported"]


def test_a_job_has_failed_when_no_attempt_is_left(
    account: Account, settings: Environment, jobs: Path
) -> None:
    failing = {"passed": False, "checks": [{"name": "chat", "outcome": "failed", "reason": "HTTP 500"}]}
    account.report("embed-smoke-1a", "a", **failing)
    account.report("embed-smoke-1a", "b", **failing)
    twice = models_of(account, settings, jobs)
    account.report("embed-smoke-1a", "c", **failing)
    thrice = models_of(account, settings, jobs)
    account.report("embed-smoke-1a", "d", passed=True)

    assert "embed: 2 of 3 attempts of embed-smoke-1a failed: chat: HTTP 500" in map(str, twice.pending)
    assert (twice.outcome, twice.final) == ("pending", False)
    assert thrice.problems == ("embed: every attempt of embed-smoke-1a failed, the last with chat: HTTP 500",)
    assert (thrice.outcome, thrice.final) == ("failed", True)
    assert not models_of(account, settings, jobs).problems  # asked again, it answered


def test_a_job_that_is_never_repeated_has_failed_at_once(
    account: Account, settings: Environment, jobs: Path
) -> None:
    account.report("chat-bench-1a", "a", passed=False, verdict="failed: 3.0% errors at concurrency 1")

    assert models_of(account, settings, jobs).problems == (
        "chat: every attempt of chat-bench-1a failed, the last with failed: 3.0% errors at concurrency 1",
    )


def test_reports_of_other_jobs_say_nothing(account: Account, settings: Environment, jobs: Path) -> None:
    """A changed server is another job; the name of one job may begin with that of another."""
    account.report("embed-smoke-0z", "a", passed=True)
    account.report("embed-smoke-1a2", "a", passed=True)

    assert models_of(account, settings, jobs).seen == "0 of 2 models answered"


def test_reports_of_before_the_job_was_taken_back_say_nothing(
    account: Account, settings: Environment, jobs: Path
) -> None:
    """Going back to an earlier state brings back its job, which asks again under the same name."""
    account.report("embed-smoke-1a", "a", passed=True)
    account.deleted = [("checks/embed/job-embed-smoke-1a.yaml", 0), ("checks/chat/job-chat-smoke-1a.yaml", 9)]
    assert models_of(account, settings, jobs).seen == "1 of 2 models answered"

    account.deleted.append(("checks/embed/job-embed-smoke-1a.yaml", 5))
    assert models_of(account, settings, jobs).seen == "0 of 2 models answered"

    account.report("embed-smoke-1a", "b", passed=True)
    account.written["embed-smoke-1a/b.json"] = 6
    assert models_of(account, settings, jobs).seen == "1 of 2 models answered"


@pytest.mark.parametrize("checks", [{"smoke": False}, {}])
def test_where_no_job_reports_nobody_reads_reports(account: Account, tree: Path, checks: Any) -> None:
    settings = an_environment(checks=checks)
    if not checks:
        settings = settings.model_copy(update={"delivery": "none"})

    assert "models" not in {answer.check for answer in verify(account, settings, tree)}


@pytest.mark.parametrize(
    ("change", "check", "transient"),
    [
        (_set(lambda a: a.stacks[0], StackStatus="UPDATE_IN_PROGRESS"), "stacks", True),
        (_set(lambda a: a.stacks[0], StackStatus="UPDATE_ROLLBACK_IN_PROGRESS"), "stacks", False),
        (lambda a: a.stacks.pop(0), "stacks", False),
        (_set(_cluster, status="UPDATING"), "cluster", True),
        (_set(_cluster, status="FAILED"), "cluster", False),
        (_set(_cluster, version="1.35"), "cluster", False),
        (_set(lambda a: a.nodegroups["system"], status="UPDATING"), "node groups", True),
        (_set(lambda a: a.nodegroups["system"], status="CREATE_FAILED"), "node groups", False),
        (_set(lambda a: a.addons["vpc-cni"], status="DEGRADED"), "add-ons", True),
        (lambda a: a.addons.clear(), "add-ons", False),
        (lambda a: a.objects.clear(), "tree", False),
    ],
)
def test_what_may_pass_by_itself_is_told_from_what_does_not(
    change: Callable[[Account], None],
    check: str,
    transient: bool,
    account: Account,
    settings: Environment,
    tree: Path,
) -> None:
    change(account)
    (failed,) = [answer for answer in verify(account, settings, tree) if answer.problems]

    assert (failed.check, failed.transient, failed.final) == (check, transient, not transient)


class TestExistingCluster:
    """Of a cluster that somebody else manages, only what Modelyard has installed is judged."""

    @pytest.fixture
    def shared(self) -> Environment:
        return in_shared({"has": {"metrics-server": "v0.8.1"}}, checks={"smoke": False})

    def seen(self, account: Account, shared: Environment, tree: Path) -> dict[str, Observation]:
        return {each.check: each for each in verify(account, shared, tree)}

    def test_its_nodes_and_its_open_api_server_are_its_owners(self, shared: Environment, tree: Path) -> None:
        account = Account(shared.name, "shared")
        assert account.cluster is not None
        account.cluster["resourcesVpcConfig"]["endpointPublicAccess"] = True
        account.nodegroups["theirs"] = {"status": "DEGRADED"}
        account.addons = {"aws-efs-csi-driver": {"status": "ACTIVE"}}

        found = self.seen(account, shared, tree)

        assert "node groups" not in found
        assert found["cluster"].problems == ()

    @pytest.mark.parametrize(("addon", "problems"), [("metrics-server", 0), ("aws-efs-csi-driver", 1)])
    def test_addons_that_it_had_are_its_owners(
        self, shared: Environment, tree: Path, addon: str, problems: int
    ) -> None:
        account = Account(shared.name, "shared")
        account.addons = {"eks-pod-identity-agent": {"status": "ACTIVE"}, addon: {"status": "CREATE_FAILED"}}

        assert len(self.seen(account, shared, tree)["add-ons"].problems) == problems


def test_argo_cd_of_your_own_needs_no_stack_for_the_delivery(tree: Path) -> None:
    settings = an_environment(
        delivery="argocd",
        git={"url": "https://git.example.org/models.git"},
        cache={"fileSystemId": "fs-0123456789abcdef0", "accessPointId": "fsap-0123456789abcdef0"},
    )
    account = Account(settings.name, settings.cluster_name)
    account.stacks = [each for each in account.stacks if not str(each["StackName"]).endswith("-delivery")]

    [stacks] = [each for each in verify(account, settings, tree) if each.check == "stacks"]

    assert stacks.problems == ()
