"""An environment in a cluster that is there already: it comes, and it goes, and the cluster is as it was."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest

from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import Deployment
from modelyard.localcloud.endpoint import Endpoint
from tests.e2e.test_docs import UNVALIDATED
from tests.e2e.test_make_up import ROOT, Project, project

__all__ = ["project"]  # the fixture

pytestmark = pytest.mark.story

ACCOUNT, REGION, CLUSTER = "123456789012", "us-east-2", "shared"
PLATFORMS = ROOT / "tests" / "fixtures" / "platforms"


@pytest.fixture
def theirs(project: Project) -> Endpoint:
    """An account in which another team has a VPC and a cluster with one add-on, and the file that names
    them."""
    for folder in ("models", "environments"):
        shutil.rmtree(project.folder / folder)
        shutil.copytree(PLATFORMS / folder, project.folder / folder)
    started = lifecycle.start(project.state, python=lifecycle.find_python(project.folder))
    endpoint = replace(started, account=ACCOUNT, region=REGION)
    ec2, iam, eks = (endpoint.client(name) for name in ("ec2", "iam", "eks"))
    for name in ("platform-engineer", "external-secrets", "shared-nodes", "control-plane"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        f"{REGION}{zone}": ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.64.{number}.0/24", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ab")
    }
    group = ec2.create_security_group(GroupName="eks", Description="cluster", VpcId=vpc)["GroupId"]
    nodes = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    eks.create_cluster(
        name=CLUSTER,
        version="1.36",
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/control-plane",
        resourcesVpcConfig={"subnetIds": list(subnets.values()), "securityGroupIds": [group]},
        accessConfig={"authenticationMode": "API"},
        tags={"owner": "platform"},
    )
    for name in ("vpc-cni", "eks-pod-identity-agent"):
        eks.create_addon(clusterName=CLUSTER, addonName=name)
    file = project.folder / "environments" / "shared.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in (
        ("vpc-0a1b2c3d4e5f60718", vpc),
        ("subnet-0a1b2c3d4e5f60718", subnets["us-east-2a"]),
        ("subnet-0a1b2c3d4e5f60719", subnets["us-east-2b"]),
        ("sg-0a1b2c3d4e5f60718", group),
        ("sg-0fedcba9876543210", nodes),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return endpoint


def what_is_theirs(endpoint: Endpoint) -> dict[str, Any]:
    """The cluster, its add-ons and the network, as another team sees them."""
    ec2, eks = endpoint.client("ec2"), endpoint.client("eks")
    return {
        "cluster": eks.describe_cluster(name=CLUSTER)["cluster"],
        "addons": sorted(eks.list_addons(clusterName=CLUSTER)["addons"]),
        "entries": sorted(eks.list_access_entries(clusterName=CLUSTER)["accessEntries"]),
        "subnets": sorted(each["SubnetId"] for each in ec2.describe_subnets()["Subnets"]),
        "groups": sorted(each["GroupId"] for each in ec2.describe_security_groups()["SecurityGroups"]),
    }


def test_it_comes_and_goes_and_the_cluster_is_as_it_was(project: Project, theirs: Endpoint) -> None:
    before = what_is_theirs(theirs)

    up = project.localcloud("up", "--env", "shared", **UNVALIDATED)

    assert up.returncode == 0, up.stdout + up.stderr
    between = what_is_theirs(theirs)
    assert between["cluster"] == before["cluster"]
    assert set(between["addons"]) - set(before["addons"]) == {
        "aws-efs-csi-driver",
        "eks-node-monitoring-agent",
    }
    added = set(between["entries"]) - set(before["entries"])
    assert f"arn:aws:iam::{ACCOUNT}:role/platform-engineer" in added
    gone = Deployment(endpoint=theirs, project=project.folder, state=project.state).destroy()
    assert gone == 0
    assert what_is_theirs(theirs) == before


def test_an_addon_that_the_file_forgot_fails_and_stays(project: Project, theirs: Endpoint) -> None:
    file = project.folder / "environments" / "shared.yaml"
    text = file.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "eks-pod-identity-agent" not in line]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    before = what_is_theirs(theirs)

    up = project.localcloud("up", "--env", "shared", **UNVALIDATED)

    assert up.returncode == 1
    assert "eks-pod-identity-agent" in up.stdout + up.stderr
    assert what_is_theirs(theirs) == before
