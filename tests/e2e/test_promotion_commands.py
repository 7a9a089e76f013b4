"""What follows the checks in the pipeline, run as it stands there: deploy and smoke, on the embedded AWS."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from infra import promotion
from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import Deployment, ToolMissing, child_environment, find_cdk, find_node
from modelyard.localcloud.endpoint import Endpoint
from tests.promotion.checkout import check_out

ROOT = Path(__file__).parents[2]

try:
    PYTHON = lifecycle.find_python(ROOT)
    find_cdk(ROOT)
except ToolMissing as missing:
    pytest.skip(f"the embedded AWS is not installed: {missing}", allow_module_level=True)


@dataclass(frozen=True)
class Account:
    """A copy of the repository, and an embedded AWS that is bootstrapped for environment `dev`."""

    folder: Path
    endpoint: Endpoint

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        environment = child_environment(os.environ, self.endpoint, node=find_node())
        return subprocess.run(
            ["bash", "-euc", command],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def client(self, service: str) -> Any:
        return self.endpoint.client(service)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder = check_out(tmp_path_factory.mktemp("project") / "checkout")
    state = tmp_path_factory.mktemp("cloud") / "state"
    endpoint = replace(lifecycle.start(state, python=PYTHON), account="111111111111", region="us-east-2")
    try:
        assert Deployment(endpoint=endpoint, project=ROOT, state=state).bootstrap() == 0
        people = endpoint.client("iam")
        for role in ("platform-engineer", "model-developer"):  # whom environments/dev.yaml admits
            people.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
        yield Account(folder, endpoint)
    finally:
        lifecycle.stop(state)


@pytest.fixture(scope="module")
def deployed(account: Account) -> Account:
    result = account.run(promotion.deploy("dev"))
    assert result.returncode == 0, result.stdout + result.stderr
    return account


def verify(account: Account) -> dict[str, list[str]]:
    """Problems by check, as `modelyard verify` reports them."""
    result = account.run(".venv/bin/modelyard verify --env dev --output json")
    document = json.loads(result.stdout)
    assert document["passed"] is (result.returncode == 0)
    return {each["check"]: each["problems"] for each in document["checks"] if each["problems"]}


def test_nothing_deployed_is_not_what_was_deployed(account: Account) -> None:
    if account.client("eks").list_clusters()["clusters"]:
        pytest.skip("the account is in use already")
    result = account.run(promotion.smoke("dev"))

    assert result.returncode != 0
    assert "no stack modelyard-dev-network" in result.stdout
    assert "there is no such cluster" in result.stdout


def test_the_smoke_command_passes_after_the_deploy_command(deployed: Account) -> None:
    result = deployed.run(promotion.smoke("dev"))

    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok: seen from outside" in result.stdout


def test_it_asks_as_the_lookup_role_of_the_account(deployed: Account) -> None:
    iam = deployed.client("iam")
    (role,) = (r for r in iam.list_roles()["Roles"] if r["RoleName"].startswith("cdk-hnb659fds-lookup-role"))
    assert role["RoleName"] == "cdk-hnb659fds-lookup-role-111111111111-us-east-2"


def test_a_changed_file_in_the_bucket_is_noticed(deployed: Account) -> None:
    s3 = deployed.client("s3")
    (bucket,) = (b["Name"] for b in s3.list_buckets()["Buckets"] if not b["Name"].startswith("cdk-"))
    key = "platform/kustomization.yaml"
    before = s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    s3.put_object(Bucket=bucket, Key=key, Body=before + b"# by hand\n")
    s3.put_object(Bucket=bucket, Key="models/stray.yaml", Body=b"")
    try:
        assert verify(deployed) == {
            "tree": [
                "models/stray.yaml was delivered and is not rendered any more",
                f"{key} differs from what is rendered",
            ]
        }
    finally:
        s3.put_object(Bucket=bucket, Key=key, Body=before)
        s3.delete_object(Bucket=bucket, Key="models/stray.yaml")


def test_an_environment_file_that_says_something_else_is_noticed(deployed: Account) -> None:
    file = deployed.folder / "environments" / "dev.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('version: "1.36"', 'version: "1.35"'), encoding="utf-8")
    try:
        assert verify(deployed) == {"cluster": ["it runs Kubernetes 1.36, the file says 1.35"]}
    finally:
        file.write_text(text, encoding="utf-8")
