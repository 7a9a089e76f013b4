"""The embedded AWS with the real CDK CLI: deployed resources exist, errors fail the deploy, destroyed
resources are gone."""

from __future__ import annotations

import socket
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from modelyard.localcloud import inventory, journal, lifecycle
from modelyard.localcloud.buckets import empty_buckets
from modelyard.localcloud.deployment import Deployment, ToolMissing, find_cdk, find_node
from modelyard.localcloud.endpoint import Clients, Endpoint
from modelyard.localcloud.entries import read as read_entries
from modelyard.localcloud.inventory import Presence
from modelyard.localcloud.journal import EmulationLevel

ROOT = Path(__file__).parents[2]

try:
    PYTHON = lifecycle.find_python(ROOT)
    find_cdk(ROOT)
    find_node()
except ToolMissing as missing:
    pytest.skip(f"the embedded AWS is not installed: {missing}", allow_module_level=True)

APP = """
import pathlib

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2, aws_eks as eks, aws_iam as iam
from aws_cdk import aws_s3 as s3, aws_s3_deployment as deployment, aws_sqs as sqs

app = cdk.App(analytics_reporting=True)
scenario = app.node.get_context("scenario")
env = cdk.Environment(account="123456789012", region="eu-central-1")


class Zoned(cdk.Stack):
    @property
    def availability_zones(self):
        return ["eu-central-1a", "eu-central-1b"]


def role(scope, name, service):
    return iam.Role(scope, name, assumed_by=iam.ServicePrincipal(service))


if scenario in ("first", "second"):
    stack = Zoned(app, "Good", env=env)
    cdk.Tags.of(stack).add("turn", scenario)
    vpc = ec2.Vpc(stack, "Vpc", nat_gateways=1, restrict_default_security_group=False)
    vpc.add_flow_log("Flow")
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
    vpc.add_interface_endpoint("Sts", service=ec2.InterfaceVpcEndpointAwsService.STS)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    cluster = eks.CfnCluster(
        stack, "Cluster", name="good", role_arn=role(stack, "ClusterRole", "eks.amazonaws.com").role_arn,
        resources_vpc_config=eks.CfnCluster.ResourcesVpcConfigProperty(
            subnet_ids=[subnet.subnet_id for subnet in vpc.private_subnets]),
    )
    ec2.CfnSecurityGroupIngress(
        stack, "FromCluster", group_id=group.security_group_id, ip_protocol="tcp", from_port=2049, to_port=2049,
        source_security_group_id=cluster.attr_cluster_security_group_id,
    )
    node = role(stack, "NodeRole", "ec2.amazonaws.com")
    eks.CfnNodegroup(
        stack, "Nodes", cluster_name=cluster.ref, node_role=node.role_arn, capacity_type="SPOT",
        subnets=[subnet.subnet_id for subnet in vpc.private_subnets],
        scaling_config=eks.CfnNodegroup.ScalingConfigProperty(min_size=1, max_size=2, desired_size=1),
    )
    eks.CfnAccessEntry(stack, "Entry", cluster_name=cluster.ref, principal_arn=node.role_arn, type="EC2_LINUX")
    pod = role(stack, "PodRole", "pods.eks.amazonaws.com")
    eks.CfnAddon(
        stack, "Csi", cluster_name=cluster.ref, addon_name="aws-efs-csi-driver",
        addon_version="v1" if scenario == "first" else "v2",
        pod_identity_associations=[eks.CfnAddon.PodIdentityAssociationProperty(
            service_account="efs", role_arn=pod.role_arn)],
    )
    eks.CfnPodIdentityAssociation(
        stack, "Identity", cluster_name=cluster.ref, namespace="web", role_arn=pod.role_arn,
        service_account=scenario,
    )
    bucket = s3.Bucket(
        stack, "Bucket", versioned=True, enforce_ssl=True,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    deployment.BucketDeployment(
        stack, "Files", destination_bucket=bucket, destination_key_prefix="tree", retain_on_delete=False,
        sources=[
            deployment.Source.data(f"{scenario}.txt", "hello"),
            deployment.Source.json_data("facts.json", {"vpc": vpc.vpc_id}),
        ],
    )
    cdk.CustomResource(
        stack, "Chart", resource_type="Custom::AWSCDK-EKS-HelmChart", service_token="arn:aws:lambda:local",
        properties={"ClusterName": cluster.ref, "Release": "flux", "Chart": "flux2", "Version": "2.15.0",
                    "Namespace": "flux-system"},
    )
else:
    stack = cdk.Stack(app, "Bad", env=env)
    queue = sqs.Queue(stack, "Queue")
    if scenario == "unknown-type":
        cdk.CfnResource(stack, "MadeUp", type="AWS::Made::Up").node.add_dependency(queue)
    if scenario == "missing-cluster":
        principal = role(stack, "Role", "ec2.amazonaws.com")
        entry = eks.CfnAccessEntry(stack, "Entry", cluster_name="nowhere", principal_arn=principal.role_arn)
        entry.node.add_dependency(queue)
app.synth()
"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A bootstrapped embedded AWS, and a project to deploy to it."""
    folder = tmp_path_factory.mktemp("localcloud")
    (folder / "app.py").write_text(APP)
    (folder / "cdk.json").write_text("{}")
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    state = folder / "state"
    endpoint = replace(lifecycle.start(state, python=PYTHON), account="123456789012", region="eu-central-1")
    try:
        deployment = Deployment(endpoint=endpoint, project=folder, state=state, app="python app.py")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CDK_VALIDATION", "false")  # it is CloudFormation's answer that is tested
            assert deployment.bootstrap() == 0
            assert inventory.is_bootstrapped(Clients(endpoint))
            yield deployment
    finally:
        lifecycle.stop(state)


def deploy(cloud: Deployment, scenario: str) -> int:
    deployment = replace(cloud, context={"scenario": scenario})
    assert deployment.synth() == 0
    return deployment.deploy()


def entries(cloud: Deployment) -> list[journal.Entry]:
    return read_entries(cloud.state / journal.FILE_NAME)


def files(endpoint: Endpoint) -> dict[str, str]:
    """Every object of the buckets that stacks made, by key."""
    s3 = endpoint.client("s3")
    buckets = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    return {
        item["Key"]: s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read().decode()
        for bucket in buckets
        if not bucket.startswith("cdk-")
        for item in s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    }


@pytest.mark.story
def test_deployed_updated_and_destroyed_as_cloudformation_says(cloud: Deployment) -> None:
    endpoint, clients = cloud.endpoint, Clients(cloud.endpoint)
    eks, ec2 = endpoint.client("eks"), endpoint.client("ec2")

    assert deploy(cloud, "first") == 0

    rows = inventory.take(clients, entries(cloud))
    assert [state.status for state in inventory.stacks(clients)] == ["CREATE_COMPLETE"]
    assert {row.presence for row in rows} == {Presence.CREATED, Presence.RECORDED, Presence.IGNORED}
    assert [row.type for row in rows if row.presence is Presence.RECORDED] == ["Custom::AWSCDK-EKS-HelmChart"]
    vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"][0]["VpcId"]
    cluster = eks.describe_cluster(name="good")["cluster"]
    assert cluster["resourcesVpcConfig"]["vpcId"] == vpc
    group = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["VpcId"] == vpc
    [nodes] = eks.list_nodegroups(clusterName="good")["nodegroups"]
    assert (
        eks.describe_nodegroup(clusterName="good", nodegroupName=nodes)["nodegroup"]["capacityType"] == "SPOT"
    )
    assert len(eks.list_access_entries(clusterName="good")["accessEntries"]) == 1
    assert identities(eks) == {("kube-system", "efs"), ("web", "first")}
    assert len(ec2.describe_nat_gateways()["NatGateways"]) == 1
    assert files(endpoint) == {"tree/first.txt": "hello", "tree/facts.json": f'{{"vpc":"{vpc}"}}'}

    assert deploy(cloud, "second") == 0

    assert [state.status for state in inventory.stacks(clients)] == ["UPDATE_COMPLETE"]
    addon = eks.describe_addon(clusterName="good", addonName="aws-efs-csi-driver")["addon"]
    assert addon["addonVersion"] == "v2"
    assert identities(eks) == {("kube-system", "efs"), ("web", "second")}
    assert files(endpoint).keys() == {"tree/second.txt", "tree/facts.json"}
    assert Presence.MISSING not in {row.presence for row in inventory.take(clients, entries(cloud))}

    before, claims = inventory.take(clients, entries(cloud)), entries(cloud)
    assert empty_buckets(clients, before) > 0
    assert cloud.destroy() == 0

    assert inventory.stacks(clients) == []
    # The log group of a flow log is retained unless the app says otherwise, as on AWS.
    assert {row.type for row in before if row.retained} == {"AWS::Logs::LogGroup"}
    assert inventory.still_there(clients, before, claims) == []
    assert files(endpoint) == {}
    assert eks.list_clusters()["clusters"] == []


def identities(eks: object) -> set[tuple[str, str]]:
    listed = eks.list_pod_identity_associations(clusterName="good")["associations"]  # type: ignore[attr-defined]
    return {(item["namespace"], item["serviceAccount"]) for item in listed}


@pytest.mark.story
def test_an_unknown_resource_type_fails_and_leaves_nothing(
    cloud: Deployment, capfd: pytest.CaptureFixture[str]
) -> None:
    assert deploy(cloud, "unknown-type") != 0

    assert "Unrecognized resource types: [AWS::Made::Up]" in "".join(capfd.readouterr())
    assert nothing_of(cloud, "Bad")


@pytest.mark.story
def test_an_access_entry_on_a_missing_cluster_fails_and_rolls_back(
    cloud: Deployment, capfd: pytest.CaptureFixture[str]
) -> None:
    assert deploy(cloud, "missing-cluster") != 0

    assert "No cluster found for name: nowhere." in "".join(capfd.readouterr())
    clients = Clients(cloud.endpoint)
    assert {state.name: state.status for state in inventory.stacks(clients)}["Bad"] == "ROLLBACK_COMPLETE"
    [failure] = inventory.failures(clients)
    assert (failure.logical_id, failure.type) == ("Entry", "AWS::EKS::AccessEntry")
    assert nothing_of(cloud, "Bad")


def nothing_of(cloud: Deployment, stack: str) -> bool:
    """Neither the stack's resources by its own word, nor the queue and the role by boto3's."""
    rows = [row for row in inventory.take(Clients(cloud.endpoint), entries(cloud)) if row.stack == stack]
    queues = cloud.endpoint.client("sqs").list_queues().get("QueueUrls", [])
    roles = cloud.endpoint.client("iam").list_roles()["Roles"]
    return not rows and not queues and not any(role["RoleName"].startswith(stack) for role in roles)


@pytest.mark.story
def test_what_is_not_executed_is_recorded_with_what_was_asked(cloud: Deployment) -> None:
    assert deploy(cloud, "first") == 0

    chart = journal.current(entries(cloud))["Good", "Chart"]
    assert chart.level is EmulationLevel.RECORDED
    assert chart.detail == {
        "ClusterName": "good",
        "Release": "flux",
        "Chart": "flux2",
        "Version": "2.15.0",
        "Namespace": "flux-system",
        "note": "not executed, there is no Kubernetes API",
    }


@pytest.mark.story
def test_what_boto3_no_longer_finds_is_missing(cloud: Deployment) -> None:
    assert deploy(cloud, "first") == 0
    cloud.endpoint.client("eks").delete_addon(clusterName="good", addonName="aws-efs-csi-driver")

    rows = inventory.take(Clients(cloud.endpoint), entries(cloud))

    assert [row.logical_id for row in rows if row.presence is Presence.MISSING] == ["Csi"]


@pytest.mark.story
def test_the_server_listens_on_the_loopback_address_only(cloud: Deployment) -> None:
    port = urllib.parse.urlsplit(cloud.endpoint.url).port
    assert port is not None

    # A socket bound to every interface would take this one too: all of 127/8 is this machine.
    with socket.socket() as probe, pytest.raises(OSError):  # noqa: PT011 - which errno depends on the system
        probe.connect(("127.0.0.2", port))


def test_a_running_server_is_reused_and_a_stopped_one_is_gone(tmp_path: Path) -> None:
    state = tmp_path / "state"

    first = lifecycle.start(state, python=PYTHON)
    second = lifecycle.start(state, python=PYTHON)

    assert first == second
    assert lifecycle.stop(state)
    assert lifecycle.running(state) is None
    assert not state.exists()
    assert not lifecycle.stop(state)
