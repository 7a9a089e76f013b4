"""What `modelyard verify` makes of what AWS says; tests/e2e has it ask an embedded AWS."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modelyard.deployed.checks import Answer, verify
from modelyard.spec import Environment
from tests.unit.given import an_environment


class Missing(Exception):
    pass


class Account:
    """Answers of an account in which environment `lab` stands; tests break one of them."""

    def __init__(self, name: str, cluster: str) -> None:
        tag = {"Key": "modelyard:environment", "Value": name}
        self.stacks = [
            {"StackName": f"modelyard-{name}-{concern}", "StackStatus": "CREATE_COMPLETE", "Tags": [tag]}
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

    def __call__(self, service: str) -> Any:
        return {"cloudformation": self._cloudformation, "eks": self._eks, "s3": self._s3}[service]()

    def _cloudformation(self) -> Any:
        resources = [{"ResourceType": "AWS::S3::Bucket", "PhysicalResourceId": "tree"}]
        return SimpleNamespace(
            get_paginator=_pages(describe_stacks=lambda: {"Stacks": self.stacks}),
            describe_stack_resources=lambda StackName: {"StackResources": resources},
        )

    def _eks(self) -> Any:
        def describe_cluster(name: str) -> dict[str, Any]:
            if self.cluster is None or self.cluster["name"] != name:
                raise Missing
            return {"cluster": self.cluster}

        return SimpleNamespace(
            exceptions=SimpleNamespace(ResourceNotFoundException=Missing),
            describe_cluster=describe_cluster,
            get_paginator=_pages(
                list_nodegroups=lambda clusterName: {"nodegroups": list(self.nodegroups)},
                list_addons=lambda clusterName: {"addons": list(self.addons)},
            ),
            describe_nodegroup=lambda clusterName, nodegroupName: {
                "nodegroup": self.nodegroups[nodegroupName]
            },
            describe_addon=lambda clusterName, addonName: {"addon": self.addons[addonName]},
        )

    def _s3(self) -> Any:
        def listed(Bucket: str) -> dict[str, Any]:
            tags = {key: hashlib.md5(body).hexdigest() for key, body in self.objects.items()} | self.tags
            return {"Contents": [{"Key": key, "ETag": f'"{tag}"'} for key, tag in tags.items()]}

        return SimpleNamespace(
            get_paginator=_pages(list_objects_v2=listed),
            get_object=lambda Bucket, Key: {"Body": io.BytesIO(self.objects[Key])},
        )


def _pages(**operations: Callable[..., Any]) -> Callable[[str], Any]:
    return lambda name: SimpleNamespace(paginate=lambda **arguments: [operations[name](**arguments)])


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


def problems(answers: list[Answer]) -> dict[str, tuple[str, ...]]:
    return {answer.check: answer.problems for answer in answers if not answer.passed}


def test_what_stands_as_it_was_deployed_passes(account: Account, settings: Environment, tree: Path) -> None:
    answers = verify(account, settings, tree)

    assert [answer.check for answer in answers] == ["stacks", "cluster", "node groups", "add-ons", "tree"]
    assert problems(answers) == {}


def test_auto_mode_needs_no_node_group(account: Account, tree: Path) -> None:
    account.nodegroups.clear()

    answers = verify(account, an_environment(cluster={"compute": "auto-mode"}), tree)

    assert [answer.check for answer in answers] == ["stacks", "cluster", "add-ons", "tree"]
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

    assert [answer.check for answer in answers] == ["stacks", "cluster", "tree"]
    assert problems(answers) == {"cluster": ("there is no such cluster",)}


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
