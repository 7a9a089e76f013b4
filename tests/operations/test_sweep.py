"""`modelyard sweep`: resources with the cluster's tags are deleted, in order; all others stay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.account.conftest import REGION, Project
from tests.account.fake_account import Error, FakeAccount, denied
from tests.operations.conftest import CLUSTER, exists

SWEEP = ("sweep", "--env", "lab")
GONE = Error("ResourceNotFoundException", f"No cluster found for name: {CLUSTER}.")
KINDS = [
    "load balancer",
    "classic load balancer",
    "instance",
    "launch template",
    "network interface",
    "volume",
    "security group",
]


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


@dataclass
class Site:
    """A VPC, and what a cluster leaves in it."""

    ec2: Any
    elbv2: Any
    elb: Any
    subnet: str
    vpc: str

    def leave(self, cluster: str) -> set[str]:
        """One thing of each kind; their ids."""
        owned = {f"kubernetes.io/cluster/{cluster}": "owned"}
        group = self.group(f"k8s-{cluster}", owned)
        interface = self.ec2.create_network_interface(SubnetId=self.subnet)["NetworkInterface"]
        self.tag(interface["NetworkInterfaceId"], {"cluster.k8s.amazonaws.com/name": cluster})
        volume = self.volume(owned)
        template = self.ec2.create_launch_template(
            LaunchTemplateName=f"karpenter-{cluster}",
            LaunchTemplateData={"InstanceType": "m7g.large"},
            TagSpecifications=[
                {"ResourceType": "launch-template", "Tags": tags(**{"eks:eks-cluster-name": cluster})}
            ],
        )["LaunchTemplate"]["LaunchTemplateId"]
        balancer = self.elbv2.create_load_balancer(
            Name=f"nlb-{cluster}",
            Type="network",
            Subnets=[self.subnet],
            Tags=tags(**{"elbv2.k8s.aws/cluster": cluster}),
        )["LoadBalancers"][0]["LoadBalancerArn"]
        self.elb.create_load_balancer(
            LoadBalancerName=f"elb-{cluster}",
            Listeners=[{"Protocol": "TCP", "LoadBalancerPort": 443, "InstancePort": 30000}],
            Subnets=[self.subnet],
            Tags=tags(**owned),
        )
        instance = self.instance({**owned, "karpenter.sh/nodepool": "g6e"})
        return {
            group,
            interface["NetworkInterfaceId"],
            volume,
            template,
            balancer,
            f"elb-{cluster}",
            instance,
        }

    def tag(self, identity: str, pairs: dict[str, str]) -> None:
        self.ec2.create_tags(Resources=[identity], Tags=tags(**pairs))

    def group(self, name: str, pairs: dict[str, str]) -> str:
        made: str = self.ec2.create_security_group(GroupName=name, Description="x", VpcId=self.vpc)["GroupId"]
        self.tag(made, pairs)
        return made

    def volume(self, pairs: dict[str, str]) -> str:
        made: str = self.ec2.create_volume(Size=50, AvailabilityZone=f"{REGION}a")["VolumeId"]
        self.tag(made, pairs)
        return made

    def instance(self, pairs: dict[str, str]) -> str:
        [made] = self.ec2.run_instances(
            ImageId="ami-12345678",
            InstanceType="g6e.xlarge",
            SubnetId=self.subnet,
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags(**pairs)}],
        )["Instances"]
        return str(made["InstanceId"])

    def everything(self) -> set[str]:
        """Ids of all that is there; terminated instances are not."""
        found = {each["GroupId"] for each in self.ec2.describe_security_groups()["SecurityGroups"]}
        found |= {
            each["NetworkInterfaceId"]
            for each in self.ec2.describe_network_interfaces()["NetworkInterfaces"]
            if each["Status"] == "available"
        }
        found |= {
            each["VolumeId"]
            for each in self.ec2.describe_volumes()["Volumes"]
            if each["State"] == "available"
        }
        found |= {
            each["LaunchTemplateId"] for each in self.ec2.describe_launch_templates()["LaunchTemplates"]
        }
        found |= {each["LoadBalancerArn"] for each in self.elbv2.describe_load_balancers()["LoadBalancers"]}
        classic = self.elb.describe_load_balancers()["LoadBalancerDescriptions"]
        found |= {each["LoadBalancerName"] for each in classic}
        return found | {
            instance["InstanceId"]
            for reservation in self.ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] == "running"
        }


@pytest.fixture
def site(project: Project, fake: FakeAccount) -> Site:
    """The account of environment `lab`, whose cluster is gone."""
    fake.answers["eks:DescribeCluster"] = GONE
    session = fake.session(region_name=REGION)
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    made = Site(ec2, session.client("elbv2"), session.client("elb"), subnet, vpc)
    fake.asked.clear()
    return made


def test_everything_of_the_cluster_is_listed_and_nothing_changes(
    project: Project, site: Site, fake: FakeAccount
) -> None:
    mine = site.leave(CLUSTER)
    site.leave(f"{CLUSTER}-2")
    before = site.everything()
    fake.asked.clear()

    answer = project.run(*SWEEP, "--output", "json")

    document = json.loads(answer.out)
    assert answer.code == 1
    assert {each["id"] for each in document["leftovers"]} == mine
    assert [each["kind"] for each in document["leftovers"]] == KINDS
    assert not [name for name in fake.permissions if ":Delete" in name or ":Terminate" in name]
    assert site.everything() == before
    assert "modelyard sweep --env lab --delete" in project.run(*SWEEP).out


def test_deletion_takes_the_cluster_and_leaves_its_neighbours(project: Project, site: Site) -> None:
    before = site.everything()
    mine = site.leave(CLUSTER)
    neighbours = site.leave(f"{CLUSTER}-2") | site.leave("other")
    owned = {f"kubernetes.io/cluster/{CLUSTER}": "owned"}
    neighbours |= {
        site.instance(owned),  # of a managed node group: no NodePool launched it
        site.instance({"Name": CLUSTER, "karpenter.sh/nodepool": "g6e"}),
        site.group("shared", {f"kubernetes.io/cluster/{CLUSTER}": "shared"}),
        site.volume({"Name": CLUSTER}),
    }

    answer = project.run(*SWEEP, "--delete", "--yes")

    assert answer.code == 0, answer.out
    assert "7 deleted, 0 left" in answer.out
    assert site.everything() >= before | neighbours
    assert not site.everything() & mine
    assert project.run(*SWEEP).code == 0


def test_what_a_stack_owns_is_the_stacks(project: Project, site: Site, fake: FakeAccount) -> None:
    """EC2 lets nobody but AWS set such a tag, moto neither."""
    row = {
        "GroupId": "sg-1",
        "GroupName": "of-a-stack",
        "Tags": tags(
            **{
                f"kubernetes.io/cluster/{CLUSTER}": "owned",
                "aws:cloudformation:stack-id": "arn:aws:cloudformation",
            }
        ),
    }
    fake.answers["ec2:DescribeSecurityGroups"] = {"SecurityGroups": [row]}

    assert project.run(*SWEEP).code == 0


def test_a_filter_that_an_endpoint_ignores_deletes_nothing_of_others(
    project: Project, site: Site, fake: FakeAccount
) -> None:
    neighbours = site.leave("other")
    everything = site.ec2.describe_volumes()
    everything.pop("ResponseMetadata")
    fake.answers["ec2:DescribeVolumes"] = everything

    assert project.run(*SWEEP, "--delete", "--yes").code == 0
    assert site.everything() >= neighbours


def test_it_refuses_while_the_cluster_exists(project: Project, site: Site, fake: FakeAccount) -> None:
    mine = site.leave(CLUSTER)
    exists(fake)

    for arguments in (SWEEP, (*SWEEP, "--delete", "--yes")):
        answer = project.run(*arguments)

        assert answer.code == 1
        assert "is in use" in answer.err
    assert site.everything() >= mine


def test_what_cannot_be_deleted_is_named_and_the_rest_goes(
    project: Project, site: Site, fake: FakeAccount
) -> None:
    mine = site.leave(CLUSTER)
    reason = "resource sg-1 has a dependent object"
    fake.answers["ec2:DeleteSecurityGroup"] = Error("DependencyViolation", reason)

    answer = project.run(*SWEEP, "--delete", "--yes")

    [left] = site.everything() & mine
    assert answer.code == 1
    assert "6 deleted, 1 left" in answer.out
    assert f"security group {left}:" in answer.out
    assert reason in answer.out


def test_a_listing_that_iam_denies_deletes_nothing(project: Project, site: Site, fake: FakeAccount) -> None:
    mine = site.leave(CLUSTER)
    fake.answers["ec2:DescribeVolumes"] = denied("ec2:DescribeVolumes")

    answer = project.run(*SWEEP, "--delete", "--yes")

    assert answer.code == 1
    assert "needs ec2:DescribeVolumes" in answer.err
    del fake.answers["ec2:DescribeVolumes"]
    assert site.everything() >= mine


def test_deletion_needs_the_name_where_the_policy_is_strict(project: Project, site: Site) -> None:
    mine = site.leave(CLUSTER)
    project.environment(policy="strict")

    assert project.run(*SWEEP, "--delete", "--yes").code == 1
    assert site.everything() >= mine
    assert project.run(*SWEEP, "--delete", "--confirm", "lab").code == 0


def test_the_account_must_be_the_environments(project: Project, site: Site) -> None:
    project.environment(account="999999999999")

    answer = project.run(*SWEEP, "--delete", "--yes")

    assert answer.code == 1
    assert "environment lab is 999999999999" in answer.err
