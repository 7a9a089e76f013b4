"""The pipeline's template: order, pins, roles, and the stacks that it deploys."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra import promotion
from infra.controls.iam_rules import as_list, statements
from tests.promotion.conftest import ROOT

STAGES = ("dev", "staging", "prod")

Template = dict[str, Any]


@dataclass(frozen=True)
class Assembly:
    folder: Path

    @property
    def template(self) -> Template:
        return self.read(self.folder / "Pipeline.template.json")

    @staticmethod
    def read(file: Path) -> Template:
        loaded: Template = json.loads(file.read_text(encoding="utf-8"))
        return loaded

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of the pipeline stack's resources of type `kind`."""
        return {
            name: resource["Properties"]
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == kind
        }

    def project(self, part: str) -> dict[str, Any]:
        """The one CodeBuild project whose logical id holds `part`."""
        (found,) = (body for name, body in self.of("AWS::CodeBuild::Project").items() if part in name)
        return found

    def commands(self, part: str) -> list[str]:
        buildspec = json.loads(self.project(part)["Source"]["BuildSpec"])
        found: list[str] = buildspec["phases"]["build"]["commands"]
        return found


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    from infra.controls.survey import new_app, read_environment, read_pipeline
    from infra.pipeline import PipelineStack

    folder = tmp_path_factory.mktemp("pipeline")
    tree = folder / "tree"
    tree.mkdir()
    (tree / "kustomization.yaml").write_text("resources: []\n", encoding="utf-8")
    app = new_app(ROOT, folder / "out", validate=False)
    stages = [(read_environment(ROOT, name), tree) for name in STAGES]
    PipelineStack(app, "Pipeline", pipeline=read_pipeline(ROOT), environments=stages)
    app.synth()
    return Assembly(folder / "out")


@pytest.fixture(scope="module")
def direct(assembly: Assembly, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What `cdk deploy -c env=NAME` would deploy, by environment."""
    from infra.controls.survey import new_app, read_environment
    from infra.platform import add_platform

    folders = {}
    for name in STAGES:
        folders[name] = tmp_path_factory.mktemp(name)
        app = new_app(ROOT, folders[name], validate=False)
        add_platform(app, read_environment(ROOT, name), tree=assembly.folder.parent / "tree")
        app.synth()
    return folders


def stack_names(folder: Path) -> dict[str, str]:
    """Construct id of a stack to its name in CloudFormation."""
    artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    return {
        each["displayName"].split(" ")[0].rpartition("/")[2]: each["properties"]["stackName"]
        for each in artifacts.values()
        if each["type"] == "aws:cloudformation:stack"
    }


@pytest.mark.parametrize("name", STAGES)
def test_it_deploys_the_stacks_that_a_direct_deploy_would(
    name: str, assembly: Assembly, direct: dict[str, Path]
) -> None:
    """The same names and, but for tags with construct paths, the same templates: one can take over from the
    other.

    A logical id with the path in it would make CloudFormation replace what it names.
    """
    nested = assembly.folder / f"assembly-Pipeline-{name.capitalize()}"
    names = stack_names(direct[name])

    assert stack_names(nested) == names
    for construct in names:
        (inside,) = nested.glob(f"*{construct}*.template.json")
        there = (direct[name] / f"{construct}.template.json").read_text(encoding="utf-8")
        assert without_tags_of_cdk(
            inside.read_text(encoding="utf-8").replace(f"Pipeline/{name.capitalize()}/", "")
        ) == without_tags_of_cdk(there)


def without_tags_of_cdk(text: str) -> Template:
    """A bucket bears a hash of the path of what fills it, as the key of a tag."""
    loaded: Template = json.loads(re.sub(r"aws-cdk:cr-owned:[0-9a-f]{8}", "aws-cdk:cr-owned", text))
    return loaded


def actions(assembly: Assembly) -> list[tuple[str, str, int]]:
    (pipeline,) = assembly.of("AWS::CodePipeline::Pipeline").values()
    return [
        (stage["Name"], action["Name"], action["RunOrder"])
        for stage in pipeline["Stages"]
        for action in stage["Actions"]
    ]


def test_a_push_goes_through_the_environments_in_their_order(assembly: Assembly) -> None:
    stages = list(dict.fromkeys(stage for stage, _, _ in actions(assembly)))

    assert stages == ["Source", "Build", "UpdatePipeline", "Assets", "Dev", "Staging", "Prod"]


@pytest.mark.parametrize("name", STAGES)
def test_the_smoke_step_is_the_last_of_its_stage(name: str, assembly: Assembly) -> None:
    stage = {action: order for stage, action, order in actions(assembly) if stage == name.capitalize()}
    smoke = stage.pop(f"Smoke{name.capitalize()}")

    assert smoke > max(stage.values())
    assert assembly.commands(f"Smoke{name.capitalize()}") == [promotion.smoke(name)]


@pytest.mark.parametrize("name", STAGES)
def test_the_smoke_step_may_wait_as_long_as_flux_does(name: str, assembly: Assembly) -> None:
    from modelyard.objects.delivery.kustomizations import FOLDER_MINUTES

    (stated,) = re.findall(r"^SMOKE_WAIT \?= (\d+)m$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    granted = sum(FOLDER_MINUTES.values())

    assert (int(stated), promotion.SMOKE_WAIT_MINUTES) == (granted, granted)
    ends = assembly.project(f"Smoke{name.capitalize()}")["TimeoutInMinutes"]
    assert granted < ends <= 480  # the longest of CodeBuild and of CodePipeline's action


def test_the_how_to_says_how_long_everybody_waits() -> None:
    page = (ROOT / "docs" / "how-to" / "promote-through-a-pipeline.md").read_text(encoding="utf-8")
    job = promotion.DEPLOY_TIMEOUT_MINUTES + promotion.SMOKE_TIMEOUT_MINUTES

    for what, minutes in {
        "`make smoke`": promotion.SMOKE_WAIT_MINUTES,
        "CodeBuild, for `make smoke`": promotion.SMOKE_TIMEOUT_MINUTES,
        "GitHub's job, and the session of its role": job,
    }.items():
        assert f"| {what} | {minutes} min" in page


def test_somebody_has_to_agree_before_anything_of_production_changes(assembly: Assembly) -> None:
    approvals = [(stage, order) for stage, action, order in actions(assembly) if action.startswith("Approve")]
    in_production = [order for stage, _, order in actions(assembly) if stage == "Prod"]

    assert approvals == [("Prod", 1)]
    assert sorted(in_production)[:2] == [1, 2]


@pytest.mark.parametrize(
    ("name", "removal"), [("dev", "destroy"), ("staging", "destroy"), ("prod", "retain")]
)
def test_what_is_retained_is_protected_before_it_is_smoked(
    name: str, removal: str, assembly: Assembly
) -> None:
    """CloudFormation's actions leave termination protection off (aws-cdk issue 17871)."""
    from infra.controls.survey import read_environment

    assert read_environment(ROOT, name).removal == removal
    stage = {action: order for stage, action, order in actions(assembly) if stage == name.capitalize()}
    protect = stage.get(f"Protect{name.capitalize()}")

    if removal == "destroy":
        assert protect is None
        return
    assert protect is not None
    smoke = stage.pop(f"Smoke{name.capitalize()}")
    deploys = [order for action, order in stage.items() if action.endswith("Deploy")]
    assert max(deploys) < protect < smoke
    commands = "\n".join(assembly.commands(f"Protect{name.capitalize()}"))
    nested = assembly.folder / f"assembly-Pipeline-{name.capitalize()}"
    for stack in stack_names(nested).values():
        assert f"--enable-termination-protection --stack-name {stack} " in commands


def test_the_commands_that_protect_run_in_a_shell_with_a_role_that_may_do_nothing_else(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    aws = tmp_path / "aws"
    aws.write_text(
        f'#!/bin/sh\necho "$AWS_ACCESS_KEY_ID|$*" >> {told}\n[ "$1" = sts ] && echo "key secret token"\nexit 0\n'
    )
    aws.chmod(0o755)
    role = "arn:aws:iam::111111111111:role/cdk-hnb659fds-deploy-role-111111111111-us-east-2"
    commands = promotion.protect(
        ["modelyard-prod-network", "modelyard-prod-cluster"], role=role, region="us-east-2"
    )

    subprocess.run(
        ["sh", "-e"],
        input="\n".join(commands),
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "AWS_ACCESS_KEY_ID": "own"},
    )

    assume, *protected = told.read_text().splitlines()
    assert assume.startswith(f"own|sts assume-role --role-arn {role} ")
    assert '"Action":"cloudformation:UpdateTerminationProtection"' in assume
    assert [line.split("--stack-name ")[1] for line in protected] == [
        "modelyard-prod-network --region us-east-2",
        "modelyard-prod-cluster --region us-east-2",
    ]
    assert all(line.startswith("key|") for line in protected)


def test_approvals_and_failures_are_told_by_an_encrypted_topic(assembly: Assembly) -> None:
    (topic,) = assembly.of("AWS::SNS::Topic").values()
    (subscription,) = assembly.of("AWS::SNS::Subscription").values()
    rules = {
        kind: rule["EventPattern"]["detail"]
        for rule in assembly.of("AWS::Events::Rule").values()
        for kind in rule["EventPattern"].get("detail-type", ())
        if rule["Targets"][0]["Id"] == "Target0" and "Notices" in json.dumps(rule["Targets"])
    }

    assert topic["KmsMasterKeyId"]
    assert subscription["Endpoint"] == "platform@example.org"
    assert rules == {
        "CodePipeline Pipeline Execution State Change": {
            "pipeline": ["modelyard-pipeline"],
            "state": ["FAILED", "STOPPED"],
        },
        "CodePipeline Action Execution State Change": {
            "pipeline": ["modelyard-pipeline"],
            "state": ["STARTED", "FAILED"],
            "type": {"category": ["Approval"]},
        },
    }
    (policy,) = assembly.of("AWS::SNS::TopicPolicy").values()
    assert "events.amazonaws.com" in json.dumps(policy)
    keys = [key for name, key in assembly.of("AWS::KMS::Key").items() if name.startswith("Notices")]
    assert "events.amazonaws.com" in json.dumps(keys)


def test_nothing_is_deployed_that_has_not_passed_the_checks(assembly: Assembly) -> None:
    assert assembly.commands("Synth") == [*promotion.CHECKS, promotion.SYNTH]


def test_what_npm_calls_the_latest_is_never_installed(assembly: Assembly) -> None:
    cli = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]["aws-cdk"]
    installed = {
        package
        for project in assembly.of("AWS::CodeBuild::Project").values()
        for package in re.findall(r"npm install -g (\S+?)[\"\\]", project["Source"]["BuildSpec"])
    }

    assert f"aws-cdk@{cli}" in installed
    assert len(installed) == 2
    assert all(re.fullmatch(r"[a-z-]+@\d+\.\d+\.\d+", package) for package in installed), installed


def test_every_build_has_a_node_that_the_cdk_supports(assembly: Assembly) -> None:
    for project in assembly.of("AWS::CodeBuild::Project").values():
        assert project["Environment"]["Image"] == "aws/codebuild/standard:8.0"
        versions = json.loads(project["Source"]["BuildSpec"])["phases"]["install"]["runtime-versions"]
        assert int(versions["nodejs"]) >= 22


def test_every_build_is_encrypted_and_keeps_its_log_for_a_stated_time(assembly: Assembly) -> None:
    (log,) = assembly.of("AWS::Logs::LogGroup")
    assert assembly.of("AWS::Logs::LogGroup")[log]["RetentionInDays"] == 365
    for name, project in assembly.of("AWS::CodeBuild::Project").items():
        assert project["EncryptionKey"], name
        assert project["LogsConfig"]["CloudWatchLogs"]["GroupName"] == {"Ref": log}
        assert project["Environment"]["PrivilegedMode"] is False


def test_it_is_of_the_second_type_and_updates_itself(assembly: Assembly) -> None:
    (pipeline,) = assembly.of("AWS::CodePipeline::Pipeline").values()

    assert pipeline["PipelineType"] == "V2"
    assert pipeline["ExecutionMode"] == "QUEUED"
    assert "cdk -a . deploy Pipeline" in "\n".join(assembly.commands("SelfMutation"))


def test_no_role_of_it_reaches_every_resource(assembly: Assembly) -> None:
    allowed = [statement for _, statement in statements(assembly.template)]

    assert len(allowed) > 20
    assert [each for each in allowed if "*" in as_list(each["Resource"])] == []


def test_it_becomes_the_bootstrap_roles_of_its_accounts_and_no_others(assembly: Assembly) -> None:
    text = json.dumps(
        [each for _, each in statements(assembly.template) if each["Action"] == "sts:AssumeRole"]
    )
    foreign = set(re.findall(r":iam::(\d{12}):role/([\w-]+)", text))

    kinds = {(account, re.sub(r"^cdk-hnb659fds-|-role-.*$", "", role)) for account, role in foreign}
    stages = {f"{digit}" * 12 for digit in "123"}
    assert kinds == {
        *((account, kind) for account in stages for kind in ("deploy", "file-publishing", "lookup")),
        ("444444444444", "deploy"),
        ("444444444444", "file-publishing"),
    }


def test_a_smoke_step_may_read_and_nothing_else(assembly: Assembly) -> None:
    for name in STAGES:
        assumed = [
            json.dumps(each["Resource"])
            for policy, each in statements(assembly.template)
            if policy.startswith(f"Pipeline{name.capitalize()}Smoke") and each["Action"] == "sts:AssumeRole"
        ]
        assert len(assumed) == 1
        assert "-lookup-role-" in assumed[0]
        assert "deploy-role" not in assumed[0]
