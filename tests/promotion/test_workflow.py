"""The GitHub workflow: actionlint's findings, which jobs get credentials, and agreement with
pipeline.yaml."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from infra import promotion
from tests.promotion.conftest import ROOT
from tests.promotion.workflow import FILE, commands, jobs, workflow

ACTIONLINT = Path(sys.executable).with_name("actionlint")


def stages() -> list[str]:
    from infra.controls.survey import read_pipeline

    return [stage.environment for stage in read_pipeline(ROOT).stages]


def lint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ACTIONLINT, "-no-color", file], capture_output=True, text=True, check=False)


def test_actionlint_finds_nothing() -> None:
    result = lint(FILE)

    assert result.returncode == 0, result.stdout


def test_actionlint_would_find_something(tmp_path: Path) -> None:
    broken = tmp_path / "deploy.yml"
    broken.write_text(FILE.read_text(encoding="utf-8").replace("needs: dev\n", "needs: development\n"))

    assert "development" in lint(broken).stdout


def test_jobs_follow_each_other_as_the_stages_do() -> None:
    expected = ["checks", *stages()]

    assert list(jobs()) == expected
    assert [jobs()[name]["needs"] for name in stages()] == expected[:-1]


def test_every_command_is_the_one_of_the_pipeline() -> None:
    assert commands("checks") == [*promotion.CHECKS, promotion.SYNTH]
    for name in stages():
        assert commands(name) == [promotion.deploy(name), promotion.smoke(name)]


def test_credentials_are_of_the_environment_and_nothing_is_stored() -> None:
    assert workflow()["permissions"] == {"contents": "read"}
    assert "permissions" not in jobs()["checks"]
    for name in stages():
        assert jobs()[name]["environment"] == name
        assert jobs()[name]["permissions"] == {"contents": "read", "id-token": "write"}
    assert "secrets." not in FILE.read_text(encoding="utf-8")


def test_a_job_and_its_role_live_as_long_as_a_deploy_and_its_smoke_step_may_take() -> None:
    minutes = promotion.DEPLOY_TIMEOUT_MINUTES + promotion.SMOKE_TIMEOUT_MINUTES

    assert minutes <= 6 * 60  # where GitHub ends every job
    for name in stages():
        assert jobs()[name]["timeout-minutes"] == minutes
        (session,) = [
            step["with"]["role-duration-seconds"]
            for step in jobs()[name]["steps"]
            if "role-to-assume" in step.get("with", {})
        ]
        assert session == minutes * 60


def test_runs_wait_for_each_other() -> None:
    assert workflow()["concurrency"] == {"group": "deploy", "cancel-in-progress": False}


def test_actions_are_pinned_to_commits() -> None:
    uses = re.findall(r"uses: (\S+)(.*)", FILE.read_text(encoding="utf-8"))

    assert len(uses) > 10
    for action, comment in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@pytest.mark.parametrize("name", ["dev", "staging", "prod"])
def test_the_role_trusts_this_repository_in_this_environment_alone(name: str, tmp_path: Path) -> None:
    from infra.controls.survey import new_app, read_environment, read_pipeline
    from infra.github import GitHubStack

    app = new_app(ROOT, tmp_path)
    stack = GitHubStack(app, "GitHub", settings=read_environment(ROOT, name), pipeline=read_pipeline(ROOT))
    from aws_cdk import assertions

    template = assertions.Template.from_stack(stack).to_json()
    (role,) = (r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::IAM::Role")
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    (allowed,) = role["Policies"][0]["PolicyDocument"]["Statement"]

    assert role["MaxSessionDuration"] == jobs()[name]["timeout-minutes"] * 60
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert trust["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": f"repo:example-org/modelyard:environment:{name}",
        }
    }
    assert allowed["Action"] == "sts:AssumeRole"
    assert len(allowed["Resource"]) == 3
    assert "*" not in str(allowed)
    assert "ManagedPolicyArns" not in role


@pytest.mark.parametrize(
    ("given", "trusted"),
    [
        (None, "repo:example-org/modelyard"),
        ({"ownerId": 123456, "repositoryId": 456789}, "repo:example-org@123456/modelyard@456789"),
    ],
)
def test_a_repository_with_ids_is_trusted_by_its_ids_alone(
    given: dict[str, int] | None, trusted: str, tmp_path: Path
) -> None:
    """Tokens of repositories created after 2026-07-15 have them in their subject (GitHub's reference)."""
    from aws_cdk import assertions

    from infra.controls.survey import new_app, read_environment, read_pipeline
    from infra.github import GitHubStack
    from modelyard.spec import Pipeline

    lines = read_pipeline(ROOT).model_dump(mode="json", exclude={"github"})
    pipeline = Pipeline.model_validate({**lines, "github": given})
    stack = GitHubStack(
        new_app(ROOT, tmp_path), "GitHub", settings=read_environment(ROOT, "dev"), pipeline=pipeline
    )

    (role,) = assertions.Template.from_stack(stack).find_resources("AWS::IAM::Role").values()
    (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    subject = trust["Condition"]["StringEquals"]["token.actions.githubusercontent.com:sub"]
    assert subject == f"{trusted}:environment:dev"
