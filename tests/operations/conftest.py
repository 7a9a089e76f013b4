"""The account of tests/account, and a fake Kubernetes API in the kubeconfig."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from modelyard.cli import drain
from tests.account.conftest import REGION, Project, fake, project
from tests.account.fake_account import ACCOUNT, FakeAccount
from tests.operations.fake_kubernetes import FakeKubernetes, busy

__all__ = ["fake", "project"]  # fixtures

CLUSTER = "modelyard-lab"
ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{CLUSTER}"


@pytest.fixture
def lab(project: Project, fake: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    """The cluster of environment `lab`, busy; EKS knows it."""
    monkeypatch.setattr(drain, "POLL_S", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    exists(fake)
    stacks(fake)
    with busy(FakeKubernetes()).served() as served:
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig(project.folder / "kubeconfig", ARN)))
        yield served


def exists(fake: FakeAccount, **details: Any) -> None:
    """Let EKS know the cluster."""
    fake.answers["eks:DescribeCluster"] = {
        "cluster": {"name": CLUSTER, "arn": ARN, "status": "ACTIVE", "version": "1.36", **details}
    }


def stacks(fake: FakeAccount, *names: str, **template: Any) -> None:
    """Let CloudFormation have these stacks, all of one template; moto's has requirements that nothing else
    here needs."""
    fake.answers["cloudformation:DescribeStacks"] = {
        "Stacks": [
            {
                "StackName": name,
                "StackStatus": "CREATE_COMPLETE",
                "CreationTime": datetime.now(UTC),
                "EnableTerminationProtection": True,
                "Tags": [{"Key": "modelyard:environment", "Value": name.split("-", 1)[1].rsplit("-", 1)[0]}],
            }
            for name in names
        ]
    }
    fake.answers["cloudformation:GetTemplate"] = {"TemplateBody": json.dumps({"Resources": template})}
