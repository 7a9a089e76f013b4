"""Stack `Network`: the VPC, which may outlive the cluster in it."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.network import ExistingNetwork, InferenceNetwork
from modelyard.spec import Environment
from modelyard.spec.network import ExistingVpc


class NetworkStack(EnvironmentStack):
    concern = "network"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: VPC, subnets, endpoints"
        )
        if settings.network.vpc:
            self._use(settings.network.vpc)
            return
        network = InferenceNetwork(
            self,
            "Network",
            cluster_name=settings.cluster_name,
            availability_zones=settings.availability_zones,
            cidr=settings.network.cidr,
            pod_cidr=settings.network.pod_cidr,
            nat_gateways=settings.network.nat_gateways,
            endpoints=settings.network.endpoints,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        self._hand_over(
            network.vpc.vpc_id,
            {
                zone: subnet.subnet_id
                for zone, subnet in zip(settings.availability_zones, network.vpc.private_subnets, strict=True)
            },
        )

    def _use(self, existing: ExistingVpc) -> None:
        settings = self.settings
        zones = settings.availability_zones
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=existing.id,
            vpc_cidr_block=settings.network.cidr,
            availability_zones=list(zones),
            private_subnet_ids=[existing.private_subnets[zone] for zone in zones],
        )
        Annotations.of(vpc).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId")
        ExistingNetwork(
            self,
            "Network",
            vpc=vpc,
            subnets=vpc.private_subnets,
            cidr=settings.network.cidr,
            route_tables=existing.route_tables,
            endpoints=settings.network.endpoints,
            flow_logs=settings.network.flow_logs,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        self._hand_over(existing.id, {zone: existing.private_subnets[zone] for zone in zones})

    def _hand_over(self, vpc_id: str, subnets: Mapping[str, str]) -> None:
        self.publish("vpc-id", vpc_id)
        for zone, subnet in subnets.items():
            self.publish(f"private-subnet-{zone}", subnet)


def vpc_of(stack: EnvironmentStack) -> ec2.IVpc:
    """The environment's VPC for other stacks: its private subnets, by zone."""
    settings = stack.settings
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id=stack.read(NetworkStack, "vpc-id"),
        vpc_cidr_block=settings.network.cidr,
        availability_zones=list(settings.availability_zones),
        private_subnet_ids=[
            stack.read(NetworkStack, f"private-subnet-{zone}") for zone in settings.availability_zones
        ],
    )
    # No code here adds routes; the warning is about code that does.
    Annotations.of(vpc).acknowledge_warning("@aws-cdk/aws-ec2:noSubnetRouteTableId")
    return vpc
