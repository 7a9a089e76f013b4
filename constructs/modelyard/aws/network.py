"""The VPC: enough addresses for pods, private by default, AWS APIs reachable without the internet."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from aws_cdk import Acknowledgment, RemovalPolicy, Stack, Tags, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.audit_log import AuditLog
from modelyard.names import DISCOVERY_TAG, POD_SUBNETS_TAG
from modelyard.spec.endpoints import Endpoints, interface_endpoints

MOST_ZONES: Final = 3


class InferenceNetwork(Construct):
    """A VPC for one cluster, with a public and a private subnet in each zone.

    Nodes are in the private subnets; the public ones hold NAT gateways and any internet-facing load
    balancers.

    Args:
        cluster_name: Tag of the private subnets, by which Karpenter discovers them.
        availability_zones: Names of at most three zones. In a stack with an account, CDK still looks zones up
            unless the stack's own `availability_zones` is set.
        cidr: IPv4 range, /16 to /22.
        pod_cidr: Secondary CIDR, /16 to /22, with subnets for pods; default: none.
        nat_gateways: At most one per zone; a single one is cheaper, and a single point of failure.
        endpoints: VPC endpoints for the AWS APIs that nodes call: all, essential or none.
        log_retention_days: Days for which flow logs are kept.
        removal_policy: What happens to the flow logs when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        availability_zones: Sequence[str],
        cidr: str = "10.64.0.0/16",
        pod_cidr: str | None = None,
        nat_gateways: int = 1,
        endpoints: Endpoints = "all",
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        Validations.of(self).acknowledge(
            Acknowledgment(
                id="CloudFormation-Validate::W3010",
                reason="zones are stated, since a look-up takes credentials",
            )
        )
        prefix = int(cidr.rpartition("/")[2])
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            availability_zones=list(availability_zones),
            # Reserves the third zone's addresses, so that adding it later moves no existing subnet.
            reserved_azs=MOST_ZONES - len(availability_zones),
            nat_gateways=min(nat_gateways, len(availability_zones)),
            # The VPC CNI gives every pod an address: three private quarters, and the last quarter for public
            # subnets.
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
            # Restricting the default group takes a custom resource; nothing here uses the group.
            restrict_default_security_group=False,
        )
        """The VPC; nodes are in its `private_subnets`."""
        for subnet in self.vpc.private_subnets:
            Tags.of(subnet).add(DISCOVERY_TAG, cluster_name)
            Tags.of(subnet).add("kubernetes.io/role/internal-elb", "1")
        for subnet in self.vpc.public_subnets:
            Tags.of(subnet).add("kubernetes.io/role/elb", "1")
        if pod_cidr:
            self._add_pod_subnets(pod_cidr, cluster_name)
        add_flow_log(self, vpc=self.vpc, log_retention_days=log_retention_days, removal_policy=removal_policy)
        # Free, and used for image layers and model weights: through a NAT they would cost per gigabyte.
        endpoint = self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for statement in _s3_statements(Stack.of(self)):
            endpoint.add_to_policy(statement)
        add_interface_endpoints(
            self,
            vpc=self.vpc,
            subnets=self.vpc.private_subnets,
            cidrs=[cidr, *([pod_cidr] if pod_cidr else [])],
            endpoints=endpoints,
        )

    def _add_pod_subnets(self, cidr: str, cluster_name: str) -> None:
        """A pod subnet next to each private subnet, with the same route out. The VPC CNI finds it by its tag
        (1.18, subnet discovery), node classes of EKS Auto Mode by the cluster's name; nodes stay in the
        private subnets."""
        block = ec2.CfnVPCCidrBlock(self, "PodRange", vpc_id=self.vpc.vpc_id, cidr_block=cidr)
        quarters = ipaddress.ip_network(cidr).subnets(prefixlen_diff=2)
        for private, quarter in zip(self.vpc.private_subnets, quarters, strict=False):
            name = f"Pods{private.availability_zone[-1].upper()}"
            subnet = ec2.CfnSubnet(
                self,
                name,
                vpc_id=self.vpc.vpc_id,
                availability_zone=private.availability_zone,
                cidr_block=str(quarter),
                map_public_ip_on_launch=False,
            )
            Tags.of(subnet).add("kubernetes.io/role/cni", "1")
            Tags.of(subnet).add(POD_SUBNETS_TAG, cluster_name)
            Tags.of(subnet).add("Name", f"{self.node.path}/{name}")
            subnet.node.add_dependency(block)
            ec2.CfnSubnetRouteTableAssociation(
                subnet,
                "Route",
                subnet_id=subnet.attr_subnet_id,
                route_table_id=private.route_table.route_table_id,
            )


class ExistingNetwork(Construct):
    """Additions to an existing VPC for a cluster: a flow log and endpoints; existing resources do not change.

    Args:
        vpc: The existing VPC.
        cidr: IPv4 range of the VPC, which may call the endpoints.
        subnets: Subnets of the nodes; default: the private subnets of `vpc`.
        route_tables: Ids of their route tables, for the S3 gateway endpoint; empty if the VPC has one.
        endpoints: VPC endpoints for the AWS APIs that nodes call: all, essential or none.
        flow_logs: Whether to add a flow log.
        log_retention_days: Days for which flow logs are kept.
        removal_policy: What happens to the flow logs when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        cidr: str,
        subnets: Sequence[ec2.ISubnet] | None = None,
        route_tables: Sequence[str] = (),
        endpoints: Endpoints = "all",
        flow_logs: bool = True,
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        if flow_logs:
            add_flow_log(self, vpc=vpc, log_retention_days=log_retention_days, removal_policy=removal_policy)
        if route_tables:
            # The L2 construct needs subnets with known route tables.
            ec2.CfnVPCEndpoint(
                self,
                "S3",
                vpc_id=vpc.vpc_id,
                service_name=f"com.amazonaws.{Stack.of(self).region}.s3",
                vpc_endpoint_type="Gateway",
                route_table_ids=list(route_tables),
                policy_document=iam.PolicyDocument(statements=_s3_statements(Stack.of(self))),
            )
        inside = vpc.private_subnets if subnets is None else subnets
        add_interface_endpoints(self, vpc=vpc, subnets=inside, cidrs=[cidr], endpoints=endpoints)


def _s3_statements(stack: Stack) -> list[iam.PolicyStatement]:
    """Reads from every bucket, such as those behind ECR; writes to the account's own, so that credentials of
    another account carry nothing out of the VPC. Functions in a VPC answer CloudFormation through a bucket of
    AWS."""
    answers = f"arn:{stack.partition}:s3:::cloudformation-custom-resource-response-*/*"
    return [
        iam.PolicyStatement(
            sid="Read", principals=[iam.AnyPrincipal()], actions=["s3:Get*", "s3:List*"], resources=["*"]
        ),
        iam.PolicyStatement(
            sid="WriteToThisAccount",
            principals=[iam.AnyPrincipal()],
            actions=["s3:*"],
            resources=["*"],
            conditions={"StringEquals": {"aws:ResourceAccount": stack.account}},
        ),
        iam.PolicyStatement(
            sid="AnswerCloudFormation",
            principals=[iam.AnyPrincipal()],
            actions=["s3:PutObject"],
            resources=[answers],
        ),
    ]


def add_flow_log(
    scope: Construct, *, vpc: ec2.IVpc, log_retention_days: int, removal_policy: RemovalPolicy
) -> None:
    """Record accepted and refused traffic of the whole VPC."""
    log = AuditLog(scope, "FlowLog", retention_days=log_retention_days, removal_policy=removal_policy)
    vpc.add_flow_log("Flow", destination=ec2.FlowLogDestination.to_cloud_watch_logs(log))


def add_interface_endpoints(
    scope: Construct,
    *,
    vpc: ec2.IVpc,
    subnets: Sequence[ec2.ISubnet],
    cidrs: Sequence[str],
    endpoints: Endpoints = "all",
) -> None:
    """VPC endpoints of AWS APIs, open only to `cidrs`."""
    services = interface_endpoints(endpoints)
    if not services:
        return
    group = ec2.SecurityGroup(
        scope,
        "Endpoints",
        vpc=vpc,
        description="AWS APIs, from inside the VPC",
        allow_all_outbound=False,
    )
    # Literals: template checkers cannot evaluate a CIDR that only CloudFormation knows.
    for cidr in cidrs:
        group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443), "HTTPS from the VPC")
    for name, service in services.items():
        vpc.add_interface_endpoint(
            name,
            service=ec2.InterfaceVpcEndpointAwsService(service),
            open=False,
            security_groups=[group],
            subnets=ec2.SubnetSelection(subnets=list(subnets)),
        )
