"""The account that Karpenter asks: images, networks and prices are moto's, and an instance is a node of the
cluster a moment later.

Real: everything that Karpenter decides, and the instance types that EC2 has. Played: EC2's choice among the
types that Karpenter allows, which is the cheapest; that an instance boots; and what its kubelet and the
device plug-ins report, which is what the plan expects (tests/cluster/nodes.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto import mock_aws
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from modelyard.hardware import instance_types
from modelyard.planning import Plan
from modelyard.planning.placement import launchable
from tests.account.fake_account import ACCOUNT, Error, FakeAccount
from tests.account.served_account import served
from tests.cluster.api import Api
from tests.cluster.interruptions import Notices
from tests.cluster.nodes import general_node, node, register

_OPTIMIZED = "/aws/service/eks/optimized-ami/"
_UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
_CONSTANT = ("DescribeInstanceTypes", "DescribeInstanceTypeOfferings")
"""The longest answers by far."""
_SPOT = 0.35
_NONE: dict[str, Any] = {
    "ec2:DescribePlacementGroups": {"PlacementGroups": []},
    "ec2:DescribeInstanceStatus": {"InstanceStatuses": []},
}


@dataclass
class Ec2:
    """What `plan`'s Karpenter asks, and the nodes that it gets.

    `exhausted`: instance type and zone without capacity; "*" stands for all. `launched`: every instance, in
    the order of the launches. `allowed`: id of an instance to the types that Karpenter would have taken too.
    """

    plan: Plan
    api: Api
    exhausted: set[tuple[str, str]] = field(default_factory=set)
    launched: list[dict[str, Any]] = field(default_factory=list)
    allowed: dict[str, set[str]] = field(default_factory=dict)
    notices: Notices = field(init=False)
    before_answer: Callable[[dict[str, Any]], None] | None = None
    """Called with an instance that is launched, before who asked for it knows."""
    _images: dict[str, dict[str, Any]] = field(default_factory=dict)
    _templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def answers(self) -> dict[str, Any]:
        """By permission; what is not here is moto's."""
        return _NONE | {
            "ssm:GetParameter": self._parameter,
            "ec2:DescribeImages": self._describe_images,
            "ec2:DescribeInstanceTypes": self._dry_run,
            "ec2:DescribeSpotPriceHistory": self._spot_prices,
            "ec2:CreateLaunchTemplate": self._note_template,
            "ec2:CreateFleet": self._create_fleet,
            "ec2:DescribeInstances": self._describe_instances,
            "ec2:TerminateInstances": self._terminate,
            "ec2:CreateTags": {},
            "ec2:DescribeCapacityReservations": self._reservations,
            "eks:DescribeCluster": {"cluster": self._cluster()},
        }

    def _cluster(self) -> dict[str, Any]:
        network = {"serviceIpv4Cidr": "172.20.0.0/16", "ipFamily": "ipv4"}
        return {"name": self.plan.environment.cluster_name, "kubernetesNetworkConfig": network}

    def running(self) -> list[dict[str, Any]]:
        """Instances that nobody has terminated."""
        return [each for each in self.launched if each["State"]["Name"] == "running"]

    def vanish(self, name: str) -> dict[str, Any]:
        """End the instance of a node as nobody wished it; the node stays, and nobody speaks for it."""
        [instance] = [each for each in self.launched if each["PrivateDnsName"] == name]
        instance["State"] = {"Code": 48, "Name": "terminated"}
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "played"}
        item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self.api.set_status(item, {"conditions": [unknown]})
        return instance

    def _dry_run(self, asked: dict[str, Any]) -> Any:
        return Error("DryRunOperation") if asked.get("DryRun") else None

    def _parameter(self, asked: dict[str, Any]) -> Any:
        name = asked["Name"]
        if not name.startswith(_OPTIMIZED):
            return None
        arch, variant = name.removeprefix(_OPTIMIZED).split("/")[2:4]
        number = len(self._images)
        found = next((key for key, image in self._images.items() if image["Name"] == name), None)
        key = found or f"ami-{number:017x}"
        self._images[key] = {
            "ImageId": key,
            "Name": name,
            "Architecture": arch,
            "State": "available",
            "CreationDate": "2026-07-14T00:00:00.000Z",
            "Description": variant,
        }
        parameter = {"Name": name, "Type": "String", "Value": key, "Version": 1}
        return {"Parameter": parameter}

    def _describe_images(self, asked: dict[str, Any]) -> Any:
        wanted = {value for each in asked.get("Filters", ()) for value in each["Values"]}
        return {"Images": [image for key, image in self._images.items() if key in wanted]}

    def _spot_prices(self, _: dict[str, Any]) -> Any:
        """Of every type and zone the same share of what it costs on demand."""
        now = datetime.now(UTC)
        return {
            "SpotPriceHistory": [
                {
                    "InstanceType": each.name,
                    "AvailabilityZone": zone,
                    "ProductDescription": "Linux/UNIX",
                    "SpotPrice": f"{price * _SPOT:.4f}",
                    "Timestamp": now,
                }
                for each in instance_types().values()
                if "spot" in each.usage_classes and (price := self.plan.prices.of(each).usd_per_hour)
                for zone in self.plan.environment.availability_zones
            ]
        }

    def _reservations(self, asked: dict[str, Any]) -> Any:
        """One instance each, of the first type of its pool; the pool's zones in turn."""
        environment, rows = self.plan.environment, []
        for pool in environment.pools.values():
            kinds = launchable(pool, environment.region)
            zones = itertools.cycle(environment.pool_zones(pool))
            for each, zone in zip(pool.reservations if kinds else (), zones, strict=False):
                rows.append(
                    {
                        "CapacityReservationId": each.id,
                        "InstanceType": kinds[0].name,
                        "AvailabilityZone": zone,
                        "State": "active",
                        "InstanceMatchCriteria": "targeted",
                        "ReservationType": "default",
                        "OwnerId": environment.account,
                        "TotalInstanceCount": 1,
                        "AvailableInstanceCount": 1,
                    }
                )
        wanted = set(asked.get("CapacityReservationIds") or ())
        return {
            "CapacityReservations": [
                row for row in rows if not wanted or row["CapacityReservationId"] in wanted
            ]
        }

    def _note_template(self, asked: dict[str, Any]) -> None:
        self._templates[asked["LaunchTemplateName"]] = asked["LaunchTemplateData"]

    def _create_fleet(self, asked: dict[str, Any]) -> Any:
        if asked.get("DryRun"):
            return Error("DryRunOperation")
        offers = [
            (each, config["LaunchTemplateSpecification"])
            for config in asked["LaunchTemplateConfigs"]
            for each in config["Overrides"]
        ]
        capacity = asked["TargetCapacitySpecification"]["DefaultTargetCapacityType"]
        left = [offer for offer in offers if not self._is_exhausted(offer[0])]
        errors = [
            {
                "ErrorCode": "InsufficientInstanceCapacity",
                "ErrorMessage": "played",
                "Lifecycle": capacity,
                "LaunchTemplateAndOverrides": {"LaunchTemplateSpecification": spec, "Overrides": offer},
            }
            for offer, spec in offers
            if self._is_exhausted(offer)
        ]
        told = {"Errors": errors} if errors else {}  # an empty list would be read as one without content
        if not left:
            return {"FleetId": "fleet-0", **told}
        override, spec = min(left, key=lambda offer: self._price(offer[0]["InstanceType"]))
        # Karpenter asks at once for what it wants several times.
        wanted = asked["TargetCapacitySpecification"]["TotalTargetCapacity"]
        instances = [self._launch(override, spec, asked, capacity) for _ in range(wanted)]
        for each in instances:
            if self.before_answer:
                self.before_answer(each)
            self.allowed[each["InstanceId"]] = {offer["InstanceType"] for offer, _ in offers}
        return {
            "FleetId": "fleet-0",
            **told,
            "Instances": [
                {
                    "InstanceIds": [each["InstanceId"] for each in instances],
                    "InstanceType": override["InstanceType"],
                    "Lifecycle": capacity,
                    "LaunchTemplateAndOverrides": {
                        "LaunchTemplateSpecification": spec,
                        "Overrides": override,
                    },
                }
            ],
        }

    def _is_exhausted(self, override: dict[str, Any]) -> bool:
        kind, zone = override["InstanceType"], override.get("AvailabilityZone", "")
        return bool({(kind, zone), (kind, "*"), ("*", zone)} & self.exhausted)

    def _price(self, kind: str) -> float:
        known = instance_types().get(kind)
        if known is None:
            return float("inf")
        return self.plan.prices.of(known).usd_per_hour or float("inf")

    def _launch(
        self, override: dict[str, Any], spec: dict[str, Any], asked: dict[str, Any], capacity: str
    ) -> dict[str, Any]:
        zone, kind = override["AvailabilityZone"], override["InstanceType"]
        identity = f"i-{next(self._numbers):017x}"
        tags = [
            tag
            for each in asked.get("TagSpecifications", ())
            if each["ResourceType"] == "instance"
            for tag in each["Tags"]
        ]
        template = self._templates[spec["LaunchTemplateName"]]
        name = f"ip-{identity}.{self.plan.environment.region}.compute.internal"
        instance = {
            "InstanceId": identity,
            "InstanceType": kind,
            "ImageId": template["ImageId"],
            "State": {"Code": 16, "Name": "running"},
            "Placement": {"AvailabilityZone": zone, "Tenancy": "default"},
            "PrivateDnsName": name,
            "SubnetId": override["SubnetId"],
            "SecurityGroups": [{"GroupId": group} for group in _groups(template)],
            "LaunchTime": datetime.now(UTC),
            "Architecture": "x86_64",
            "Tags": tags,
            **({"InstanceLifecycle": "spot"} if capacity == "spot" else {}),
            **_reservation(template),
        }
        self.launched.append(instance)
        self._boot(instance, zone)
        return instance

    def _boot(self, instance: dict[str, Any], zone: str) -> None:
        """As a kubelet registers: with what user data says, not ready for Karpenter yet."""
        pool = next(tag["Value"] for tag in instance["Tags"] if tag["Key"] == "karpenter.sh/nodepool")
        known = instance_types().get(instance["InstanceType"])
        if pool in self.plan.environment.pools and known:
            item = node(instance["PrivateDnsName"], known, self.plan, pool, zone)
        else:
            item = general_node(instance["PrivateDnsName"], zone)
        item["metadata"]["labels"]["node.kubernetes.io/instance-type"] = instance["InstanceType"]
        item["spec"]["taints"].append(_UNREGISTERED)
        pods = {"pods": str(_most_pods(instance["InstanceType"]) if known else 110)}
        item["status"]["capacity"] = item["status"]["capacity"] | pods
        item["spec"]["providerID"] = f"aws:///{zone}/{instance['InstanceId']}"
        register(self.api, item)

    def _describe_instances(self, asked: dict[str, Any]) -> Any:
        wanted = set(asked.get("InstanceIds") or ())
        if missing := wanted - {each["InstanceId"] for each in self.launched}:
            return Error(
                "InvalidInstanceID.NotFound", f"The instance IDs '{', '.join(missing)}' do not exist"
            )
        states = {
            value
            for each in asked.get("Filters", ())
            if each["Name"] == "instance-state-name"
            for value in each["Values"]
        }
        found = [
            each
            for each in self.launched
            if (not wanted or each["InstanceId"] in wanted)
            and (not states or each["State"]["Name"] in states)
        ]
        return {"Reservations": [{"Instances": found}]}

    def _terminate(self, asked: dict[str, Any]) -> Any:
        changed = []
        for each in self.launched:
            if each["InstanceId"] in asked["InstanceIds"]:
                before, each["State"] = each["State"], {"Code": 48, "Name": "terminated"}
                changed.append(
                    {"InstanceId": each["InstanceId"], "PreviousState": before, "CurrentState": each["State"]}
                )
        return {"TerminatingInstances": changed}


def offered(kind: str, region: str, zone: str) -> bool:
    """Whether EC2 has the type in this zone."""
    rows = INSTANCE_TYPE_OFFERINGS["availability-zone"][region]
    return any(row["InstanceType"] == kind and row["Location"] == zone for row in rows)


def _most_pods(kind: str) -> int:
    """As many as the addresses of the first network card's interfaces allow, but for two on the host's."""
    network = INSTANCE_TYPES[kind]["NetworkInfo"]
    card = network["NetworkCards"][network["DefaultNetworkCardIndex"]]
    return int(card["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def _groups(template: dict[str, Any]) -> list[str]:
    """Security groups of the instances of a launch template; a node with others has drifted."""
    interfaces = template.get("NetworkInterfaces", ())
    return [
        *template.get("SecurityGroupIds", ()),
        *(group for each in interfaces[:1] for group in each["Groups"]),
    ]


def _reservation(template: dict[str, Any]) -> dict[str, Any]:
    """Of the instances of a launch template; a node of a reserved pool without one has drifted."""
    asked = template.get("CapacityReservationSpecification", {})
    target = asked.get("CapacityReservationTarget")
    return (
        {
            "CapacityReservationId": target["CapacityReservationId"],
            "CapacityReservationSpecification": asked,
        }
        if target
        else {}
    )


@contextmanager
def account(plan: Plan, api: Api) -> Iterator[tuple[Ec2, dict[str, str]]]:
    """The account of a plan's environment with its network, and the variables with which Karpenter meets
    it."""
    environment = plan.environment
    cluster, region = environment.cluster_name, environment.region
    with mock_aws():
        fake, ec2 = FakeAccount(), Ec2(plan, api)
        client = fake.session(region_name=region).client("ec2")
        vpc = client.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
        tags = [{"Key": "karpenter.sh/discovery", "Value": cluster}]
        for number, zone in enumerate(environment.availability_zones):
            client.create_subnet(
                VpcId=vpc,
                AvailabilityZone=zone,
                CidrBlock=f"10.64.{number * 16}.0/20",
                TagSpecifications=[{"ResourceType": "subnet", "Tags": tags}],
            )
        mark = [{"Key": "aws:eks:cluster-name", "Value": cluster}]
        group = client.create_security_group(GroupName="cluster", Description="cluster", VpcId=vpc)
        _tag(region, group["GroupId"], mark)
        iam = fake.session(region_name=region).client("iam")
        iam.create_role(RoleName=f"{cluster}-node", AssumeRolePolicyDocument="{}")
        iam.create_instance_profile(InstanceProfileName=f"{cluster}-node")
        iam.add_role_to_instance_profile(InstanceProfileName=f"{cluster}-node", RoleName=f"{cluster}-node")
        fake.answers |= ec2.answers()
        with served(fake, constant=_CONSTANT) as variables:
            yield ec2, variables | {"AWS_REGION": region}


def _tag(region: str, resource: str, tags: list[dict[str, str]]) -> None:
    """With a key that only AWS itself may set."""
    ec2_backends[ACCOUNT][region].create_tags([resource], {tag["Key"]: tag["Value"] for tag in tags})
