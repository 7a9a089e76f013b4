"""`modelyard doctor` for an environment in a cluster that somebody else manages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.account.conftest import REGION, Project
from tests.account.fake_account import ACCOUNT, Error, FakeAccount, denied

ADMIN = f"arn:aws:iam::{ACCOUNT}:role/platform-engineer"
GROUP = "sg-0a1b2c3d4e5f60718"
VPC = "vpc-0a1b2c3d4e5f60718"
OURS = {"modelyard:environment": "lab"}
ENTRIES, NODES = "eks:DescribeAccessEntry", "ec2:DescribeInstances"
ONLY_THERE = (ENTRIES, NODES, "ec2:DescribeVpcEndpoints")
"""Permissions that only environments in such a cluster, or in a VPC of others, need."""
TRUST = '{"Version": "2012-10-17", "Statement": []}'


def shared(project: Project, has: dict[str, str] | None = None, **cluster: Any) -> None:
    """Put environment `lab` into cluster `shared`."""
    subnets = {f"{REGION}{zone}": f"subnet-0a1b2c3d{i}" for i, zone in enumerate("ac")}
    existing = {"securityGroup": GROUP, "has": {"metrics-server": "v0.8.1-eksbuild.11"} | (has or {})}
    if "karpenter" in existing["has"]:
        existing["nodeRole"] = "shared-nodes"
    project.environment(
        network={"vpc": {"id": VPC, "privateSubnets": subnets}, "endpoints": "none"},
        cluster={"name": "shared", "admins": [ADMIN], "existing": existing} | cluster,
    )


@pytest.fixture
def account(fake: FakeAccount) -> FakeAccount:
    """The cluster is as the file says: an admin without entry, and two add-ons."""
    there(fake)
    addons(fake)
    fake.answers[ENTRIES] = Error("ResourceNotFoundException")
    fake.session(region_name=REGION).client("iam").create_role(
        RoleName="platform-engineer", AssumeRolePolicyDocument=TRUST
    )
    return fake


def there(fake: FakeAccount, network: dict[str, Any] | None = None, **details: Any) -> None:
    cluster = {
        "name": "shared",
        "status": "ACTIVE",
        "version": "1.36",
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
        "resourcesVpcConfig": {
            "vpcId": VPC,
            "clusterSecurityGroupId": GROUP,
            "endpointPrivateAccess": True,
        }
        | (network or {}),
    }
    fake.answers["eks:DescribeCluster"] = {"cluster": cluster | details}


def addons(fake: FakeAccount, **changes: dict[str, Any]) -> None:
    """The VPC CNI and the metrics server, with `changes`."""
    found: dict[str, dict[str, Any]] = {
        "vpc-cni": {
            "addonVersion": "v1.19.0-eksbuild.1",
            "configurationValues": '{"enableNetworkPolicy": "true"}',
        },
        "metrics-server": {"addonVersion": "v0.8.1-eksbuild.11"},
    }
    for name, change in changes.items():
        found[name.replace("_", "-")] = found.get(name.replace("_", "-"), {}) | change
    fake.answers["eks:ListAddons"] = {"addons": list(found)}
    fake.answers["eks:DescribeAddon"] = lambda asked: {
        "addon": {"addonName": asked["addonName"], "status": "ACTIVE", **found[asked["addonName"]]}
    }


def test_a_cluster_that_is_as_the_file_says_is_well(project: Project, account: FakeAccount) -> None:
    shared(project)

    cluster, parts = project.results("existing cluster"), project.results("its add-ons")

    assert {each["result"] for each in (*cluster.values(), *parts.values())} == {"ok"}
    assert set(cluster) == {"shared", ADMIN}
    assert set(parts) == {"vpc-cni", "metrics-server"}
    for check in ("cluster", "addons", "system nodes"):
        assert project.results(check) == {}  # they are about a cluster that Modelyard makes


@pytest.mark.parametrize(
    ("network", "details", "says", "fix"),
    [
        ({}, {"version": "1.35"}, "Kubernetes of the cluster is 1.35", 'cluster: {version: "1.35"}'),
        ({}, {"version": "1.31"}, "Kubernetes of the cluster is 1.31", "upgrade the cluster"),
        ({"vpcId": "vpc-1"}, {}, "VPC of the cluster is vpc-1", "network: {vpc: {id: vpc-1}}"),
        (
            {"clusterSecurityGroupId": "sg-1"},
            {},
            "security group of the cluster is sg-1",
            "cluster: {existing: {securityGroup: sg-1}}",
        ),
        (
            {},
            {"computeConfig": {"enabled": True}},
            "compute of the cluster is auto-mode",
            "{compute: auto-mode}",
        ),
        ({}, {"status": "UPDATING"}, "the cluster is UPDATING", "aws eks wait cluster-active"),
        (
            {},
            {"accessConfig": {"authenticationMode": "CONFIG_MAP"}},
            "refuses every access entry",
            "--access-config authenticationMode=API_AND_CONFIG_MAP",
        ),
        ({"endpointPrivateAccess": False}, {}, "no private endpoint", "endpointPrivateAccess=true"),
    ],
)
def test_what_differs_is_said_with_the_line_that_mends_it(
    project: Project,
    account: FakeAccount,
    network: dict[str, Any],
    details: dict[str, Any],
    says: str,
    fix: str,
) -> None:
    shared(project)
    there(account, network, **details)

    found = project.results("existing cluster")["shared"]

    assert found["result"] == "problem"
    assert says in found["reason"]
    assert fix in found["fix"]


def test_a_cluster_that_is_not_there_is_a_problem(project: Project, account: FakeAccount) -> None:
    shared(project)
    account.answers["eks:DescribeCluster"] = Error("ResourceNotFoundException")

    found = project.results("existing cluster")["shared"]

    assert found["result"] == "problem"
    assert "no such cluster" in found["reason"]


def test_a_cluster_of_ours_is_not_given_away_by_a_line(project: Project, account: FakeAccount) -> None:
    """Its stack would lose the cluster, and CloudFormation deletes what leaves a template."""
    shared(project)
    there(account, tags=OURS)

    found = project.results("existing cluster")["shared"]

    assert "a deploy would delete it" in found["reason"]
    assert "take existing out" in found["fix"]


def test_a_cluster_of_somebody_else_is_not_made_again(project: Project, account: FakeAccount) -> None:
    project.environment(cluster={"name": "shared"})

    found = project.results("names")["shared"]

    assert found["result"] == "problem"
    assert "existing: …" in found["fix"]


@pytest.mark.parametrize(("tags", "result"), [({}, "problem"), (OURS, "ok")])
def test_a_principal_has_one_access_entry(
    project: Project, account: FakeAccount, tags: dict[str, str], result: str
) -> None:
    shared(project)
    account.answers[ENTRIES] = {"accessEntry": {"principalArn": ADMIN, "tags": tags}}

    found = project.results("existing cluster")[ADMIN]

    assert found["result"] == result


@pytest.mark.parametrize(
    ("changes", "subject", "result", "says"),
    [
        (
            {"vpc_cni": {"configurationValues": "{}"}},
            "vpc-cni",
            "problem",
            "does not enforce NetworkPolicies",
        ),
        ({"vpc_cni": {"configurationValues": "enableNetworkPolicy: 'true'"}}, "vpc-cni", "ok", "left alone"),
        (
            {"metrics_server": {"addonVersion": "v0.7.2-eksbuild.1"}},
            "metrics-server",
            "problem",
            "says v0.8.1",
        ),
        (
            {"aws_efs_csi_driver": {"addonVersion": "v2"}},
            "aws-efs-csi-driver",
            "problem",
            "fail to install it",
        ),
        (
            {"aws_efs_csi_driver": {"addonVersion": "v3", "tags": OURS}},
            "aws-efs-csi-driver",
            "ok",
            "this environment's",
        ),
        ({"adot": {"addonVersion": "v0.1"}}, "adot", "ok", "left alone"),
    ],
)
def test_addons_are_named_or_missing(
    project: Project,
    account: FakeAccount,
    changes: dict[str, dict[str, Any]],
    subject: str,
    result: str,
    says: str,
) -> None:
    shared(project)
    addons(account, **changes)

    found = project.results("its add-ons")[subject]

    assert (found["result"], says in found["reason"]) == (result, True), found


def test_what_eks_does_not_know_is_left_open(project: Project, account: FakeAccount) -> None:
    shared(project, {"aws-ebs-csi-driver": "v1.60.0"})

    found = project.results("its add-ons")["aws-ebs-csi-driver"]

    assert found["result"] == "not checked"


@pytest.mark.parametrize(("permission", "subject"), [(ENTRIES, ADMIN), (NODES, None)])
def test_what_iam_denies_is_named_and_the_rest_goes_on(
    project: Project, account: FakeAccount, permission: str, subject: Any
) -> None:
    shared(project)
    account.answers[permission] = denied(permission)

    found = project.results("existing cluster")

    assert found[subject]["result"] == "not checked"
    assert permission in found[subject]["reason"]
    assert found["shared"]["result"] == "ok"
    assert project.results("its add-ons")


@pytest.mark.parametrize(("group", "result"), [(GROUP, None), ("sg-0fedcba9876543210", "problem")])
def test_nodes_of_pools_join_the_others(
    project: Project, account: FakeAccount, group: str, result: str | None
) -> None:
    """terraform-aws-eks gives nodes a group of their own, which alone may ask the cluster's DNS."""
    shared(project)
    node = {"InstanceId": "i-0", "SecurityGroups": [{"GroupId": group, "GroupName": "nodes"}]}
    account.answers["ec2:DescribeInstances"] = {"Reservations": [{"Instances": [node]}]}

    found = project.results("existing cluster").get(GROUP)

    assert (found and found["result"]) == result
    if found:
        assert f"nodeSecurityGroup: {group}" in found["fix"]


def test_the_role_of_nodes_has_to_exist(project: Project, account: FakeAccount) -> None:
    shared(project, {"karpenter": "1.14.1"})
    assert project.results("existing cluster")["shared-nodes"]["result"] == "problem"

    account.session(region_name=REGION).client("iam").create_role(
        RoleName="shared-nodes", AssumeRolePolicyDocument=TRUST, Path="/eks/"
    )

    assert project.results("existing cluster")["shared-nodes"]["result"] == "ok"


def test_names_that_its_own_karpenter_has_are_not_taken(project: Project, account: FakeAccount) -> None:
    account.session(region_name=REGION).client("sqs").create_queue(QueueName="shared")
    shared(project)
    assert project.results("names")["shared"]["result"] == "problem"

    shared(project, {"karpenter": "1.14.1"})

    assert "shared" not in project.results("names")
