"""The main job: the shipped app on the embedded AWS, up and down again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import ToolMissing, find_cdk
from modelyard.localcloud.endpoint import Endpoint

ROOT = Path(__file__).parents[2]
STACKS = {
    "network",
    "cluster",
    "karpenter",
    "model-cache",
    "secrets",
    "metrics",
    "registry",
    "cost",
    "delivery",
}

try:
    lifecycle.find_python(ROOT)
    find_cdk(ROOT)
except ToolMissing as missing:
    pytest.skip(f"the embedded AWS is not installed: {missing}", allow_module_level=True)


@dataclass(frozen=True)
class Project:
    """A copy of the repository's inputs, so that tests may plant mistakes in it."""

    folder: Path
    state: Path

    def localcloud(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "modelyard.localcloud", *arguments, "--state", str(self.state)],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def endpoint(self) -> Endpoint:
        running = lifecycle.running(self.state)
        assert running is not None
        return replace(running, account="000000000000", region="us-east-2")

    def client(self, service: str) -> Any:
        return Endpoint.client(self.endpoint, service)

    def app(self, planted: str) -> str:
        """Command of the shipped app with `planted` added before its synthesis."""
        composition = self.folder / "infra" / "app.py"
        program = composition.read_text(encoding="utf-8")
        assert program.count("    app.synth()\n") == 1
        composition.write_text(
            program.replace("    app.synth()\n", f"    {planted}\n    app.synth()\n"), encoding="utf-8"
        )
        return f"{sys.executable} app.py"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with copied(tmp_path) as made:
        yield made


@contextmanager
def copied(tmp_path: Path) -> Iterator[Project]:
    """A project in `tmp_path`; what runs in it stops at the end."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("charts", "infra", "models", "environments"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("app.py", "cdk.json", "modelyard.yaml"):
        shutil.copy(ROOT / name, folder)
    for name in ("node_modules", ".venv-localcloud", ".venv-scanners"):
        (folder / name).symlink_to(ROOT / name)
    made = Project(folder, tmp_path / "state")
    try:
        yield made
    finally:
        lifecycle.stop(made.state)


def test_up_creates_everything_and_down_leaves_nothing(project: Project) -> None:
    up = project.localcloud("up")

    assert up.returncode == 0, up.stdout + up.stderr
    stacks = project.client("cloudformation").describe_stacks()["Stacks"]
    ours = {s["StackName"]: s["StackStatus"] for s in stacks if s["StackName"] != "CDKToolkit"}
    assert ours == {f"modelyard-local-{name}": "CREATE_COMPLETE" for name in STACKS}
    eks = project.client("eks")
    assert eks.list_clusters()["clusters"] == ["modelyard-local"]
    assert len(eks.list_nodegroups(clusterName="modelyard-local")["nodegroups"]) == 1
    assert len(project.client("efs").describe_file_systems()["FileSystems"]) == 1
    assert project.client("secretsmanager").describe_secret(SecretId="local/inference/hf-token")
    assert project.client("sqs").get_queue_url(QueueName="modelyard-local")
    roles = {role["RoleName"] for role in project.client("iam").list_roles()["Roles"]}
    assert "modelyard-local-node" in roles
    assert delivered(project) == rendered(project)
    assert "missing" not in up.stdout
    assert "not executed, there is no Kubernetes API" in up.stdout

    again = project.localcloud("up", CDK_VALIDATION="false")  # the first one has validated the same templates
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.count("(no changes)") == len(STACKS)

    down = project.localcloud("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert "boto3 finds none" in down.stdout
    assert lifecycle.running(project.state) is None
    assert not project.state.exists()


def rendered(project: Project) -> dict[str, bytes]:
    tree = project.folder / "dist" / "local"
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def delivered(project: Project) -> dict[str, bytes]:
    s3 = project.client("s3")
    bucket = project.client("ssm").get_parameter(Name="/modelyard/local/delivery/bucket")["Parameter"][
        "Value"
    ]
    keys = [
        item["Key"]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        for item in page.get("Contents", [])
    ]
    return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


@pytest.mark.story
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (
            'cdk.CfnResource(app.node.find_child("Secrets"), "MadeUp", type="AWS::Made::Up")',
            "Unrecognized resource types: [AWS::Made::Up]",
        ),
        (
            """cdk.CfnResource(app.node.find_child("Secrets"), "Lost", type="AWS::EKS::AccessEntry",
        properties={"ClusterName": "nowhere", "PrincipalArn": "arn:aws:iam::000000000000:role/x"})""",
            "No cluster found for name: nowhere",
        ),
    ],
    ids=["an unknown resource type", "a cluster that does not exist"],
)
def test_a_planted_error_fails_and_rolls_its_stack_back(project: Project, planted: str, said: str) -> None:
    """CDK's own validation would refuse the first one before; it is CloudFormation's answer that is
    tested."""
    up = project.localcloud("up", "--app", project.app(planted), CDK_VALIDATION="false")

    assert up.returncode == 1, up.stdout
    assert said in up.stdout + up.stderr
    stacks = project.client("cloudformation").describe_stacks()["Stacks"]
    statuses = {s["StackName"]: s["StackStatus"] for s in stacks}
    assert statuses.get("modelyard-local-secrets", "ROLLBACK_COMPLETE") in (
        "ROLLBACK_COMPLETE",
        "REVIEW_IN_PROGRESS",
    )
    assert project.client("secretsmanager").list_secrets()["SecretList"] == []

    discarded = project.localcloud("down", "--discard")
    assert discarded.returncode == 0, discarded.stdout + discarded.stderr
    assert not project.state.exists()


@pytest.mark.story
def test_a_model_that_does_not_fit_deploys_nothing(project: Project) -> None:
    shutil.copy(ROOT / "tests" / "fixtures" / "qwen3-vl-8b-24gb.yaml", project.folder / "models")
    environment = project.folder / "environments" / "local.yaml"
    text = environment.read_text(encoding="utf-8").replace(
        "pools:\n", "pools:\n  g6: {accelerator: l4, limit: 8}\n"
    )
    environment.write_text(text, encoding="utf-8")

    up = project.localcloud("up")

    assert up.returncode == 1
    assert "KV001" in up.stdout + up.stderr
    assert lifecycle.running(project.state) is None
    assert json.dumps(sorted(p.name for p in project.folder.glob("dist/*"))) == "[]"
