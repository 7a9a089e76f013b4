"""VPC interface endpoints, by choice: what the stacks make, and what the plan counts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

Endpoints = Literal["all", "essential", "none"]

_ALL: Final = {
    "EcrApi": "ecr.api",
    "EcrDocker": "ecr.dkr",
    "Ec2": "ec2",
    "Sts": "sts",
    "Ssm": "ssm",
    "Eks": "eks",
    "EksAuth": "eks-auth",
    "Sqs": "sqs",
    "Logs": "logs",
    "SecretsManager": "secretsmanager",
    "ElasticFileSystem": "elasticfilesystem",
    "Kms": "kms",
}
_ESSENTIAL: Final = ("EcrApi", "EcrDocker", "Ec2", "EksAuth")


def interface_endpoints(choice: Endpoints) -> Mapping[str, str]:
    """Construct id to AWS service of each interface endpoint; the gateway endpoint of S3 is free, and always
    there.

    `essential`: what a node and a pod do not start without, so that both start when the zone of the NAT
    gateway is lost: the VPC CNI attaches addresses through EC2, add-ons are pulled from ECR (layers come
    from S3), and Pod Identity gets credentials from EKS Auth. STS is not among them: nothing here assumes a
    role by a web identity. What is left out goes through the NAT gateway: requests of a few kilobytes, so
    none of the endpoints pays for itself by traffic (docs/explanation/cost-and-throughput.md).
    """
    if choice == "none":
        return MappingProxyType({})
    return MappingProxyType({name: _ALL[name] for name in (_ALL if choice == "all" else _ESSENTIAL)})
