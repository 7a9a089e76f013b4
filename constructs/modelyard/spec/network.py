"""The environment's network: a new VPC, or an existing one."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from modelyard.spec.document import Document
from modelyard.spec.endpoints import Endpoints


def check_network(text: str) -> str:
    """`text`, if it is an IPv4 network.

    Raises:
        ValueError: a number is above 255, or host bits are set, which EC2 and Kubernetes reject.
    """
    try:
        IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"must be an IPv4 network such as 10.0.0.0/16: {error}") from None
    return text


VpcCidr = Annotated[
    str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/(1[6-9]|2[0-2])$"), AfterValidator(check_network)
]
Cidr = Annotated[
    str, Field(pattern=r"^[0-9]{1,3}(\.[0-9]{1,3}){3}/[0-9]{1,2}$"), AfterValidator(check_network)
]


class ExistingVpc(Document):
    """A VPC that is managed elsewhere; Modelyard only adds endpoints and flow logs."""

    id: Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$")]
    """ID of the VPC."""
    private_subnets: dict[str, Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]]
    """Private subnet ID by zone, one for each of `availabilityZones`; nodes and pods run there."""
    route_tables: tuple[Annotated[str, Field(pattern=r"^rtb-[0-9a-f]{8,17}$")], ...] = ()
    """Route tables of those subnets, for the S3 gateway endpoint; leave empty if the VPC already has one."""


class Network(Document):
    """The VPC: created by Modelyard, or an existing one."""

    vpc: ExistingVpc | None = None
    """An existing VPC; default: Modelyard creates one."""
    cidr: VpcCidr = "10.64.0.0/16"
    """IPv4 range of the VPC, /16 to /22; with `vpc`, the range of that VPC."""
    pod_cidr: VpcCidr | None = None
    """Secondary range for pods, such as 100.64.0.0/16, if `cidr` has to be small; not with `vpc`."""
    prefix_delegation: bool = False
    """Assign IP addresses to nodes in blocks of sixteen: more pods per node and fewer EC2 calls, for pools of
    hundreds of nodes."""
    nat_gateways: Annotated[int, Field(ge=1)] = 1
    """Number of NAT gateways; one per zone survives the loss of a zone, a single one is cheaper."""
    endpoints: Endpoints = "all"
    """VPC interface endpoints, billed by hour and zone: for `all` APIs of AWS that nodes call, for those
    without which no node or pod starts (`essential`: EC2, ECR, EKS Auth), or `none`; the rest goes through
    the NAT gateway."""
    flow_logs: bool = True
    """VPC flow logs; can be disabled only for an existing VPC, which may have its own."""

    @model_validator(mode="after")
    def _only_ours_is_ours_to_shape(self) -> Self:
        if self.vpc and self.pod_cidr:
            raise ValueError(
                "podCidr is for a VPC that Modelyard creates; in yours, tag subnets kubernetes.io/role/cni=1"
            )
        if not self.vpc and not self.flow_logs:
            raise ValueError("flowLogs can be false only beside vpc: a VPC of ours always has them")
        return self
