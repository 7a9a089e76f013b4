"""The VPC: room for pods, private by default, with AWS APIs reachable without the internet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import Acknowledgment, RemovalPolicy, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from modelyard.aws.audit_log import AuditLog

MOST_ZONES: Final = 3

_AWS = ec2.InterfaceVpcEndpointAwsService
_INTERFACE_ENDPOINTS: Final = {
    "EcrApi": _AWS.ECR,
    "EcrDocker": _AWS.ECR_DOCKER,
    "Ec2": _AWS.EC2,
    "Sts": _AWS.STS,
    "Ssm": _AWS.SSM,
    "Eks": _AWS.EKS,
    "EksAuth": _AWS.EKS_AUTH,
    "Sqs": _AWS.SQS,
    "Logs": _AWS.CLOUDWATCH_LOGS,
    "SecretsManager": _AWS.SECRETS_MANAGER,
    "ElasticFileSystem": _AWS.ELASTIC_FILESYSTEM,
    "Kms": _AWS.KMS,
}


class InferenceNetwork(Construct):
    """A VPC for one cluster, with a public and a private subnet in each zone.

    Nodes live in the private subnets; the public ones hold NAT gateways and, if you make them, internet-facing load
    balancers. `availability_zones` are names, never looked up.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,  # Karpenter finds subnets by this name
        availability_zones: Sequence[str],
        cidr: str = "10.64.0.0/16",  # /16 to /22
        nat_gateways: int = 1,  # one for each zone at most; one alone is a single point of failure, and cheaper
        interface_endpoints: bool = True,
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,  # of the flow logs
    ) -> None:
        super().__init__(scope, construct_id)
        prefix = int(cidr.rpartition("/")[2])
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=list(availability_zones),
            # Keeps the third zone's addresses free, so that adding it later moves no existing subnet.
            reserved_azs=MOST_ZONES - len(availability_zones),
            nat_gateways=min(nat_gateways, len(availability_zones)),
            # The VPC CNI gives every pod an address: three private quarters, and the last quarter for the public side.
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Private", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS, cidr_mask=prefix + 2
                ),
                ec2.SubnetConfiguration(
                    name="Public",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=prefix + 4,
                    map_public_ip_on_launch=False,
                ),
            ],
            # Emptying the default group takes a custom resource; nothing here uses that group.
            restrict_default_security_group=False,
        )
        Validations.of(self.vpc).acknowledge(
            Acknowledgment(
                id="CloudFormation-Validate::W3010",
                reason="zones are stated, since a look-up takes credentials",
            )
        )
        for subnet in self.vpc.private_subnets:
            Tags.of(subnet).add("karpenter.sh/discovery", cluster_name)
            Tags.of(subnet).add("kubernetes.io/role/internal-elb", "1")
        for subnet in self.vpc.public_subnets:
            Tags.of(subnet).add("kubernetes.io/role/elb", "1")

        self.flow_log = AuditLog(
            self, "FlowLog", retention_days=log_retention_days, removal_policy=removal_policy
        )
        self.vpc.add_flow_log("Flow", destination=ec2.FlowLogDestination.to_cloud_watch_logs(self.flow_log))

        # Free, and the way of image layers and model weights: through a NAT they would cost per gigabyte.
        self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        if interface_endpoints:
            self._add_interface_endpoints(cidr)

    def _add_interface_endpoints(self, cidr: str) -> None:
        group = ec2.SecurityGroup(
            self,
            "Endpoints",
            vpc=self.vpc,
            description="AWS APIs, from inside the VPC",
            allow_all_outbound=False,
        )
        # The literal: a checker of templates cannot judge a range that only CloudFormation knows.
        group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "HTTPS from the VPC")
        for name, service in _INTERFACE_ENDPOINTS.items():
            self.vpc.add_interface_endpoint(
                name,
                service=service,
                open=False,
                security_groups=[group],
                subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            )
