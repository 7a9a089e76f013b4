"""Environment prod, as it is shipped: its first create fails, and the how-to recovers it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import child_environment, find_node
from tests.e2e.deployed_prod import ACCOUNT, REGION
from tests.e2e.test_docs import ROOT, blocks
from tests.e2e.test_make_up import Project, project

__all__ = ["project"]  # the fixture

pytestmark = pytest.mark.story

PAGE = ROOT / "docs" / "how-to" / "recover-a-failed-deploy.md"
STACK = "modelyard-prod-cluster"
UNVALIDATED = {"CDK_VALIDATION": "false"}


def statuses(client: Any) -> dict[str, str]:
    return {each["StackName"]: each["StackStatus"] for each in client.describe_stacks()["Stacks"]}


def test_a_failed_first_create_is_repeated_by_the_how_to(project: Project, tmp_path: Path) -> None:
    if shutil.which("aws") is None:
        pytest.skip("the page uses the AWS command line, which is not installed")
    started = lifecycle.start(project.state, python=lifecycle.find_python(project.folder))
    endpoint = replace(started, account=ACCOUNT, region=REGION)
    cloudformation = endpoint.client("cloudformation")
    for name in ("platform-engineer", "break-glass"):  # and not model-on-call, whom EKS then refuses
        endpoint.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")

    first = project.localcloud("up", "--env", "prod", **UNVALIDATED)

    assert first.returncode == 1, first.stdout
    assert "invalid principal" in first.stdout + first.stderr
    assert statuses(cloudformation)[STACK] == "ROLLBACK_FAILED"  # the cluster is protected by itself
    groups = endpoint.client("logs").describe_log_groups(logGroupNamePrefix="/aws/eks/")["logGroups"]
    assert groups == [], "what a rollback keeps has a name that the next create needs"
    endpoint.client("iam").create_role(RoleName="model-on-call", AssumeRolePolicyDocument="{}")
    repeated = project.localcloud("up", "--env", "prod", **UNVALIDATED)
    assert repeated.returncode == 1, "if the CLI recovers by itself, the page is not needed"

    script = "\n".join(block.script for block in blocks(PAGE) if "recover" in block.info.split())
    followed = subprocess.run(
        ["bash", "-euc", script],
        env={**child_environment(os.environ, endpoint, node=find_node()), "AWS_PAGER": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert followed.returncode == 0, followed.stdout + followed.stderr
    assert STACK not in statuses(cloudformation)
    second = project.localcloud("up", "--env", "prod", **UNVALIDATED)
    assert second.returncode == 0, second.stdout + second.stderr
    assert statuses(cloudformation)[STACK] == "CREATE_COMPLETE"
    (protected,) = cloudformation.describe_stacks(StackName=STACK)["Stacks"]
    assert protected["EnableTerminationProtection"]
