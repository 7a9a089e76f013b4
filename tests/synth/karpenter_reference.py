"""What Karpenter 1.14.1's own CloudFormation template allows the controller, transcribed on 2026-11-21.

`C` stands for the cluster's name, `R` for the region. A statement is its actions, the resource types, and its
conditions as operator and key to value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_OWNED = ("StringEquals", "aws:ResourceTag/kubernetes.io/cluster/C")
_OWNED_POOL = ("StringLike", "aws:ResourceTag/karpenter.sh/nodepool")
_REQUEST_OWNED = ("StringEquals", "aws:RequestTag/kubernetes.io/cluster/C")
_REQUEST_CLUSTER = ("StringEquals", "aws:RequestTag/eks:eks-cluster-name")
_REQUEST_POOL = ("StringLike", "aws:RequestTag/karpenter.sh/nodepool")
_REGION = "topology.kubernetes.io/region"
_CLASS = "karpenter.k8s.aws/ec2nodeclass"

_TAGGED = {
    "fleet/*",
    "instance/*",
    "volume/*",
    "network-interface/*",
    "launch-template/*",
    "spot-instances-request/*",
}
_BY_TAGS = {_REQUEST_OWNED: "owned", _REQUEST_CLUSTER: "C", _REQUEST_POOL: "*"}
_OF_OURS = {_OWNED: "owned", _OWNED_POOL: "*"}
_PROFILE_REQUEST = {
    _REQUEST_OWNED: "owned",
    _REQUEST_CLUSTER: "C",
    ("StringEquals", f"aws:RequestTag/{_REGION}"): "R",
    ("StringLike", f"aws:RequestTag/{_CLASS}"): "*",
}
_PROFILE_OURS = {
    _OWNED: "owned",
    ("StringEquals", f"aws:ResourceTag/{_REGION}"): "R",
    ("StringLike", f"aws:ResourceTag/{_CLASS}"): "*",
}


@dataclass(frozen=True)
class Statement:
    actions: set[str]
    resources: set[str]
    conditions: dict[tuple[str, str], Any] = field(default_factory=dict)


REFERENCE: dict[str, Statement] = {
    "AllowScopedEC2InstanceAccessActions": Statement(
        {"ec2:RunInstances", "ec2:CreateFleet"},
        {
            "image/*",
            "snapshot/*",
            "security-group/*",
            "subnet/*",
            "capacity-reservation/*",
            "placement-group/*",
        },
    ),
    "AllowScopedEC2LaunchTemplateAccessActions": Statement(
        {"ec2:RunInstances", "ec2:CreateFleet"}, {"launch-template/*"}, _OF_OURS
    ),
    "AllowScopedEC2InstanceActionsWithTags": Statement(
        {"ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"}, _TAGGED, _BY_TAGS
    ),
    "AllowScopedResourceCreationTagging": Statement(
        {"ec2:CreateTags"},
        _TAGGED,
        {
            **_BY_TAGS,
            ("StringEquals", "ec2:CreateAction"): ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        },
    ),
    "AllowScopedResourceTagging": Statement(
        {"ec2:CreateTags"},
        {"instance/*"},
        {
            **_OF_OURS,
            ("StringEqualsIfExists", "aws:RequestTag/eks:eks-cluster-name"): "C",
            ("ForAllValues:StringEquals", "aws:TagKeys"): [
                "eks:eks-cluster-name",
                "karpenter.sh/nodeclaim",
                "Name",
            ],
        },
    ),
    "AllowScopedDeletion": Statement(
        {"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, {"instance/*", "launch-template/*"}, _OF_OURS
    ),
    "AllowPassingInstanceRole": Statement(
        {"iam:PassRole"},
        {"the node role"},
        {("StringEquals", "iam:PassedToService"): ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]},
    ),
    "AllowScopedInstanceProfileCreationActions": Statement(
        {"iam:CreateInstanceProfile"}, {"instance-profile/*"}, _PROFILE_REQUEST
    ),
    "AllowScopedInstanceProfileTagActions": Statement(
        {"iam:TagInstanceProfile"}, {"instance-profile/*"}, {**_PROFILE_OURS, **_PROFILE_REQUEST}
    ),
    "AllowScopedInstanceProfileActions": Statement(
        {"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"},
        {"instance-profile/*"},
        _PROFILE_OURS,
    ),
    "AllowAPIServerEndpointDiscovery": Statement({"eks:DescribeCluster"}, {"cluster/C"}),
    "AllowInterruptionQueueActions": Statement(
        {"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, {"the queue"}
    ),
    "AllowZonalShiftStatusReadOnly": Statement(
        {"arc-zonal-shift:GetManagedResource"},
        {"*"},
        {("StringEquals", "arc-zonal-shift:ResourceIdentifier"): "cluster/C"},
    ),
    "AllowRegionalReadActions": Statement(
        {
            f"ec2:Describe{kind}"
            for kind in (
                "CapacityReservations",
                "Images",
                "InstanceStatus",
                "InstanceTypeOfferings",
                "InstanceTypes",
                "Instances",
                "LaunchTemplates",
                "PlacementGroups",
                "SecurityGroups",
                "SpotPriceHistory",
                "Subnets",
            )
        },
        {"*"},
        {("StringEquals", "aws:RequestedRegion"): "R"},
    ),
    "AllowSSMReadActions": Statement({"ssm:GetParameter"}, {"parameter/aws/service/*"}),
    "AllowPricingReadActions": Statement({"pricing:GetProducts"}, {"*"}),
    "AllowUnscopedInstanceProfileListAction": Statement({"iam:ListInstanceProfiles"}, {"*"}),
    "AllowInstanceProfileReadActions": Statement({"iam:GetInstanceProfile"}, {"instance-profile/*"}),
}
