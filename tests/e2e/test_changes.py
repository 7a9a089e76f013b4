"""Day 2 on the embedded AWS: a deployed platform is changed, and nothing else changes with it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from modelyard.localcloud.deployment import child_environment, find_node
from tests.e2e.test_make_up import STACKS, Project, copied, delivered, project, rendered

__all__ = ["project"]  # the fixture

pytestmark = pytest.mark.story

UNVALIDATED = ("CDK_VALIDATION", "false")
"""Of these templates CDK's own validation is a test of tests/controls."""

NEW_POOL = {
    "accelerator": "h200",
    "capacity": ["reserved"],
    "reservations": ["cr-0123456789abcdef0"],
    "limit": 8,
}
TEAM = "arn:aws:iam::000000000000:role/search"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Environment local, deployed with the Kubernetes before: one deployment for the tests below, which take
    it in turn."""
    with pytest.MonkeyPatch.context() as patch, copied(tmp_path_factory.mktemp("standing")) as made:
        patch.setenv(*UNVALIDATED)
        change(made, cluster__version="1.35")
        up = made.localcloud("up")
        assert up.returncode == 0, up.stdout + up.stderr
        yield made


def change(project: Project, **changes: Any) -> None:
    """Rewrite parts of `environments/local.yaml`, by dotted path with `__`."""
    path = project.folder / "environments" / "local.yaml"
    yaml = YAML()
    data = yaml.load(path.read_text(encoding="utf-8"))
    for where, value in changes.items():
        *above, last = where.split("__")
        place = data
        for key in above:
            place = place.setdefault(key, {})
        place[last] = value
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(data, file)


def differences(said: str) -> dict[str, set[str]]:
    """Stack to what `cdk diff` says of its resources: sign, type and the last part of the path."""
    found: dict[str, set[str]] = {}
    stack = ""
    for line in said.splitlines():
        if match := re.match(r"Stack (\S+) \(", line):
            stack = match[1]
        elif match := re.match(r"\[([+~-])\] (AWS::\S+|Custom::\S+) (\S+)", line):
            found.setdefault(stack, set()).add(f"{match[1]} {match[2]}")
    return found


def test_the_closing_table_is_what_boto3_finds(standing: Project) -> None:
    """Independently of the inventory: types of the journal that say `created` against listings of ours."""
    project = standing
    entries = [
        json.loads(line)
        for line in (project.state / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    told: dict[str, dict[str, int]] = {}
    for entry in entries:
        if entry["stack"] != "CDKToolkit" and not entry["error"]:
            levels = told.setdefault(entry["type"], {})
            levels[entry["level"]] = levels.get(entry["level"], 0) + 1

    cluster = "modelyard-local"
    eks, budgets = project.client("eks"), project.client("budgets")
    found = {
        "AWS::EKS::Addon": len(eks.list_addons(clusterName=cluster)["addons"]),
        "AWS::EFS::MountTarget": sum(
            system["NumberOfMountTargets"]
            for system in project.client("efs").describe_file_systems()["FileSystems"]
        ),
        "AWS::Budgets::Budget": len(budgets.describe_budgets(AccountId="000000000000")["Budgets"]),
        "AWS::CloudWatch::Alarm": len(project.client("cloudwatch").describe_alarms()["MetricAlarms"]),
        "AWS::SQS::Queue": len(project.client("sqs").list_queues()["QueueUrls"]),
        "AWS::SecretsManager::Secret": len(project.client("secretsmanager").list_secrets()["SecretList"]),
        "AWS::EC2::NatGateway": len(project.client("ec2").describe_nat_gateways()["NatGateways"]),
    }
    assert {kind: told[kind] for kind in found} == {kind: {"created": count} for kind, count in found.items()}
    recorded = {kind for kind, levels in told.items() if set(levels) == {"recorded"}}
    assert recorded == {
        "AWS::APS::Workspace",
        "AWS::CE::AnomalyMonitor",
        "AWS::CE::AnomalySubscription",
        "AWS::EC2::VPCCidrBlock",
        "AWS::ECR::PullThroughCacheRule",
        "AWS::ECR::RepositoryCreationTemplate",
        "AWS::Grafana::Workspace",
        "Custom::AWSCDK-EKS-HelmChart",
    }


def test_a_publication_and_the_deploys_around_it_agree(standing: Project) -> None:
    project = standing
    model = project.folder / "models" / "qwen3-32b-fp8.yaml"
    deployed = model.read_text(encoding="utf-8")
    key = "models/qwen3-32b-fp8/deployment-qwen3-32b-fp8.yaml"
    first = delivered(project)

    model.write_text(deployed.replace("replicas: 2", "replicas: 3"), encoding="utf-8")
    published = publish(project)

    assert f"+ {key}" in published
    assert b"replicas: 3" in delivered(project)[key]
    assert delivered(project) == rendered(project)

    # CloudFormation last uploaded the first tree, so deploying that again changes nothing; publishing it
    # does.
    model.write_text(deployed, encoding="utf-8")
    back = project.localcloud("up")
    assert back.stdout.count("(no changes)") == len(STACKS), back.stdout
    assert b"replicas: 3" in delivered(project)[key]
    publish(project)
    assert delivered(project) == first

    model.write_text(deployed.replace("replicas: 2", "replicas: 3"), encoding="utf-8")
    publish(project)
    later = project.localcloud("up")
    assert later.stdout.count("(no changes)") == len(STACKS) - 1, later.stdout
    assert delivered(project) == rendered(project)
    assert "0 files uploaded, 0 deleted" in publish(project)


def publish(project: Project) -> str:
    """Run `modelyard publish` against the embedded AWS; what it said."""
    run = subprocess.run(
        [str(Path(sys.executable).with_name("modelyard")), "publish", "--env", "local"],
        cwd=project.folder,
        env=child_environment(os.environ, project.endpoint, node=find_node()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_an_update_changes_what_the_diff_announces_and_nothing_else(standing: Project) -> None:
    """The last of those that share a deployment, since it takes it down."""
    project = standing
    eks = project.client("eks")
    assert eks.describe_cluster(name="modelyard-local")["cluster"]["version"] == "1.35"
    project.client("iam").create_role(RoleName="search", AssumeRolePolicyDocument="{}")
    file_system = project.client("efs").describe_file_systems()["FileSystems"][0]["FileSystemId"]

    change(
        project,
        cluster__version="1.36",
        pools__p5en=NEW_POOL,
        pools__g6e__limit=24,
        teams__search={"principals": [TEAM]},
    )
    diff = project.localcloud("diff")

    assert diff.returncode == 0, diff.stdout + diff.stderr
    assert differences(diff.stdout) == {
        "Cluster": {
            "~ AWS::EKS::Cluster",
            "~ AWS::EKS::Nodegroup",
            "~ AWS::EKS::Addon",
            "+ AWS::EKS::AccessEntry",
        },
        "Cost": {"+ AWS::CloudWatch::Alarm"},
        "Delivery": {"~ Custom::CDKBucketDeployment"},
    }
    assert eks.describe_cluster(name="modelyard-local")["cluster"]["version"] == "1.35"  # it only looked

    update = project.localcloud("up")

    assert update.returncode == 0, update.stdout + update.stderr
    assert update.stdout.count("(no changes)") == len(STACKS) - 3
    assert "missing" not in update.stdout
    assert eks.describe_cluster(name="modelyard-local")["cluster"]["version"] == "1.36"
    proxy = eks.describe_addon(clusterName="modelyard-local", addonName="kube-proxy")["addon"]
    assert proxy["addonVersion"].startswith("v1.36.")
    [name] = eks.list_nodegroups(clusterName="modelyard-local")["nodegroups"]
    nodes = eks.describe_nodegroup(clusterName="modelyard-local", nodegroupName=name)["nodegroup"]
    assert nodes["version"] == "1.36"
    assert TEAM in eks.list_access_entries(clusterName="modelyard-local")["accessEntries"]
    alarms = project.client("cloudwatch").describe_alarms()["MetricAlarms"]
    assert {a["Dimensions"][0]["Value"] for a in alarms} == {"cr-00000000000000000", "cr-0123456789abcdef0"}
    trees = delivered(project)
    assert trees == rendered(project)
    assert "platform/nodepool-p5en.yaml" in trees
    assert b'"24"' in trees["platform/nodepool-g6e.yaml"] or b"'24'" in trees["platform/nodepool-g6e.yaml"]
    # What holds weights was not replaced.
    [kept] = project.client("efs").describe_file_systems()["FileSystems"]
    assert kept["FileSystemId"] == file_system

    down = project.localcloud("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert "boto3 finds none" in down.stdout


def without_credentials(environment: Path) -> None:
    """Let a new account deploy it: ECR refuses a rule whose secret is not there yet."""
    lines = environment.read_text(encoding="utf-8").splitlines()
    start = lines.index("registry:")
    hosts = "docker.io, ghcr.io, charts.external-secrets.io, prometheus-community.github.io, "
    direct = lines[-1].replace("direct: [", f"direct: [{hosts}")
    kept = [*lines[:start], "registry:", "  pullThrough: true", direct]
    environment.write_text("\n".join(kept) + "\n", encoding="utf-8")


@pytest.mark.parametrize("environment", ["auto", "lustre", "files", "managed-argo"])
def test_every_kind_of_platform_comes_up_and_goes(environment: str, project: Project) -> None:
    """What the shipped environments leave at its default."""
    import shutil

    from tests.e2e.test_make_up import ROOT

    fixtures = ROOT / "tests" / "fixtures" / "platforms"
    for folder in ("models", "environments"):
        shutil.rmtree(project.folder / folder)
        shutil.copytree(fixtures / folder, project.folder / folder)
    without_credentials(project.folder / "environments" / "auto.yaml")

    up = project.localcloud("up", "--env", environment, **dict([UNVALIDATED]))

    assert up.returncode == 0, up.stdout + up.stderr
    assert "missing" not in up.stdout
    assert "unchecked" not in up.stdout
    down = project.localcloud("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert "boto3 finds none" in down.stdout
