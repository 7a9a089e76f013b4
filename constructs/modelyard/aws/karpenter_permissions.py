"""AWS permissions of Karpenter 1.14, as six policies that follow its reference template.

The conditions restrict every write to resources with this cluster's tags. The cluster's name is part of the
condition *keys*, where CloudFormation allows no reference: it must be known at synth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam

TAGGED_AT_LAUNCH: Final = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
"""Resource types that one launch creates, all tagged by the request."""


@dataclass(frozen=True)
class KarpenterPermissions:
    """The policies of one cluster's controller, by name."""

    stack: Stack
    cluster_name: str

    def __post_init__(self) -> None:
        if Token.is_unresolved(self.cluster_name):
            raise ValueError(
                "cluster_name must be a literal, got a token; IAM condition keys take no references"
            )

    def documents(self, *, node_role_arn: str, queue_arn: str) -> Mapping[str, iam.PolicyDocument]:
        return {
            "NodeLifecycle": self._node_lifecycle(),
            "IamIntegration": self._iam_integration(node_role_arn),
            "EksIntegration": iam.PolicyDocument(
                statements=[
                    _allow("AllowAPIServerEndpointDiscovery", ["eks:DescribeCluster"], [self._cluster_arn]),
                ]
            ),
            "Interruption": iam.PolicyDocument(
                statements=[
                    _allow(
                        "AllowInterruptionQueueActions",
                        ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                        [queue_arn],
                    )
                ]
            ),
            "ZonalShift": iam.PolicyDocument(
                statements=[
                    _allow(
                        "AllowZonalShiftStatusReadOnly",
                        ["arc-zonal-shift:GetManagedResource"],
                        ["*"],
                        {"StringEquals": {"arc-zonal-shift:ResourceIdentifier": self._cluster_arn}},
                    )
                ]
            ),
            "ResourceDiscovery": self._resource_discovery(),
        }

    def _node_lifecycle(self) -> iam.PolicyDocument:
        launch = ["ec2:RunInstances", "ec2:CreateFleet"]
        tagged = [self._ec2(f"{kind}/*") for kind in TAGGED_AT_LAUNCH]
        requested = {
            self._request("kubernetes.io/cluster"): "owned",
            "aws:RequestTag/eks:eks-cluster-name": self.cluster_name,
        }
        owned = {
            "StringEquals": {self._resource("kubernetes.io/cluster"): "owned"},
            "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
        }
        by_nodepool = {"StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"}}
        return iam.PolicyDocument(
            statements=[
                _allow(
                    "AllowScopedEC2InstanceAccessActions",
                    launch,
                    [
                        # Public resources: AMIs and snapshots of other accounts have no account in their ARN.
                        self._ec2("image/*", account=""),
                        self._ec2("snapshot/*", account=""),
                        self._ec2("security-group/*"),
                        self._ec2("subnet/*"),
                        self._ec2("capacity-reservation/*"),
                        self._ec2("placement-group/*"),
                    ],
                ),
                _allow(
                    "AllowScopedEC2LaunchTemplateAccessActions",
                    launch,
                    [self._ec2("launch-template/*")],
                    owned,
                ),
                _allow(
                    "AllowScopedEC2InstanceActionsWithTags",
                    [*launch, "ec2:CreateLaunchTemplate"],
                    tagged,
                    {"StringEquals": requested, **by_nodepool},
                ),
                _allow(
                    "AllowScopedResourceCreationTagging",
                    ["ec2:CreateTags"],
                    tagged,
                    {
                        "StringEquals": {
                            **requested,
                            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                        },
                        **by_nodepool,
                    },
                ),
                _allow(
                    "AllowScopedResourceTagging",
                    ["ec2:CreateTags"],
                    [self._ec2("instance/*")],
                    {
                        **owned,
                        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": self.cluster_name},
                        "ForAllValues:StringEquals": {
                            "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                        },
                    },
                ),
                _allow(
                    "AllowScopedDeletion",
                    ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
                    [self._ec2("instance/*"), self._ec2("launch-template/*")],
                    owned,
                ),
            ]
        )

    def _iam_integration(self, node_role_arn: str) -> iam.PolicyDocument:
        profiles = [f"arn:{self.stack.partition}:iam::{self.stack.account}:instance-profile/*"]
        region = "topology.kubernetes.io/region"
        requested = {
            self._request("kubernetes.io/cluster"): "owned",
            "aws:RequestTag/eks:eks-cluster-name": self.cluster_name,
            f"aws:RequestTag/{region}": self.stack.region,
        }
        owned = {
            self._resource("kubernetes.io/cluster"): "owned",
            f"aws:ResourceTag/{region}": self.stack.region,
        }
        request_class = {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"}
        resource_class = {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"}
        return iam.PolicyDocument(
            statements=[
                _allow(
                    "AllowPassingInstanceRole",
                    ["iam:PassRole"],
                    [node_role_arn],
                    {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
                ),
                _allow(
                    "AllowScopedInstanceProfileCreationActions",
                    ["iam:CreateInstanceProfile"],
                    profiles,
                    {"StringEquals": requested, "StringLike": request_class},
                ),
                _allow(
                    "AllowScopedInstanceProfileTagActions",
                    ["iam:TagInstanceProfile"],
                    profiles,
                    {
                        "StringEquals": {**owned, **requested},
                        "StringLike": {**resource_class, **request_class},
                    },
                ),
                _allow(
                    "AllowScopedInstanceProfileActions",
                    [
                        "iam:AddRoleToInstanceProfile",
                        "iam:RemoveRoleFromInstanceProfile",
                        "iam:DeleteInstanceProfile",
                    ],
                    profiles,
                    {"StringEquals": owned, "StringLike": resource_class},
                ),
            ]
        )

    def _resource_discovery(self) -> iam.PolicyDocument:
        partition, region, account = self.stack.partition, self.stack.region, self.stack.account
        described = (
            "CapacityReservations",
            "Images",
            "Instances",
            "InstanceStatus",
            "InstanceTypeOfferings",
            "InstanceTypes",
            "LaunchTemplates",
            "PlacementGroups",
            "SecurityGroups",
            "SpotPriceHistory",
            "Subnets",
        )
        return iam.PolicyDocument(
            statements=[
                _allow(
                    "AllowRegionalReadActions",
                    [f"ec2:Describe{kind}" for kind in described],
                    ["*"],
                    {"StringEquals": {"aws:RequestedRegion": region}},
                ),
                _allow(
                    "AllowSSMReadActions",
                    ["ssm:GetParameter"],
                    [f"arn:{partition}:ssm:{region}::parameter/aws/service/*"],
                ),
                _allow("AllowPricingReadActions", ["pricing:GetProducts"], ["*"]),
                _allow("AllowUnscopedInstanceProfileListAction", ["iam:ListInstanceProfiles"], ["*"]),
                _allow(
                    "AllowInstanceProfileReadActions",
                    ["iam:GetInstanceProfile"],
                    [f"arn:{partition}:iam::{account}:instance-profile/*"],
                ),
            ]
        )

    @property
    def _cluster_arn(self) -> str:
        stack = self.stack
        return f"arn:{stack.partition}:eks:{stack.region}:{stack.account}:cluster/{self.cluster_name}"

    def _ec2(self, resource: str, *, account: str = "*") -> str:
        return f"arn:{self.stack.partition}:ec2:{self.stack.region}:{account}:{resource}"

    def _request(self, tag: str) -> str:
        return f"aws:RequestTag/{tag}/{self.cluster_name}"

    def _resource(self, tag: str) -> str:
        return f"aws:ResourceTag/{tag}/{self.cluster_name}"


def _allow(
    sid: str, actions: list[str], resources: list[str], conditions: Mapping[str, Any] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=resources, conditions=conditions)
