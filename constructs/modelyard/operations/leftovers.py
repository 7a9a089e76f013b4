"""What a cluster may leave in an account when its controllers went before their work was done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modelyard.account.session import Account, Action, Refused


@dataclass(frozen=True)
class Leftover:
    """One thing that costs money or keeps a network from being deleted. `id` is what deletes it."""

    kind: str
    id: str
    detail: str
    order: int  # lower ones have to go first


@dataclass(frozen=True)
class _Source:
    """How to find and delete one kind of thing: the tags are those that Karpenter, the VPC CNI and the load balancer
    controllers put on what they make."""

    kind: str
    find: Action
    remove: Action
    look: Callable[[Account, str], Iterator[tuple[str, str]]]
    parameter: Callable[[str], Mapping[str, Any]]


def find_leftovers(account: Account, cluster: str) -> list[Leftover]:
    """Everything that bears the cluster's tags.

    Raises:
        Unanswered: the account does not tell.
    """
    return [
        Leftover(source.kind, identity, detail, order)
        for order, source in enumerate(_SOURCES)
        for identity, detail in source.look(account, cluster)
    ]


def delete(account: Account, leftover: Leftover) -> None:
    """Delete it.

    Raises:
        Unanswered: the account refused.
    """
    source = _SOURCES[leftover.order]
    account.ask(source.remove, **source.parameter(leftover.id))


def cluster_exists(account: Account, cluster: str) -> bool:
    """Whether EKS still knows the cluster: then nothing of it is left over.

    Raises:
        Unanswered: the account does not tell.
    """
    try:
        account.ask(Action("eks", "DescribeCluster"), name=cluster)
    except Refused as refused:
        if refused.code == "ResourceNotFoundException":
            return False
        raise
    return True


def _owned(cluster: str) -> list[dict[str, Any]]:
    return [{"Name": f"tag:kubernetes.io/cluster/{cluster}", "Values": ["owned"]}]


def _instances(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
    made = {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}
    answer = account.ask(_DESCRIBE_INSTANCES, Filters=[*_owned(cluster), made, alive])
    for reservation in answer["Reservations"]:
        for instance in reservation["Instances"]:
            yield instance["InstanceId"], f"{instance['InstanceType']}, {instance['State']['Name']}"


def _balancers(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    marks = {"elbv2.k8s.aws/cluster": cluster, f"kubernetes.io/cluster/{cluster}": "owned"}
    arns = [each["LoadBalancerArn"] for each in account.ask(_DESCRIBE_BALANCERS)["LoadBalancers"]]
    for start in range(0, len(arns), 20):  # the API takes twenty at a time
        answer = account.ask(_DESCRIBE_TAGS, ResourceArns=arns[start : start + 20])
        for described in answer["TagDescriptions"]:
            tags = {tag["Key"]: tag["Value"] for tag in described["Tags"]}
            if any(tags.get(key) == value for key, value in marks.items()):
                yield described["ResourceArn"], described["ResourceArn"].split("loadbalancer/")[-1]


def _interfaces(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    mine = {"Name": "tag:cluster.k8s.amazonaws.com/name", "Values": [cluster]}
    free = {"Name": "status", "Values": ["available"]}
    for each in account.ask(_DESCRIBE_INTERFACES, Filters=[mine, free])["NetworkInterfaces"]:
        yield each["NetworkInterfaceId"], each.get("Description", "")


def _templates(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    mine = [{"Name": "tag:karpenter.k8s.aws/cluster", "Values": [cluster]}]
    for each in account.ask(_DESCRIBE_TEMPLATES, Filters=mine)["LaunchTemplates"]:
        yield each["LaunchTemplateId"], each["LaunchTemplateName"]


def _volumes(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    free = {"Name": "status", "Values": ["available"]}
    for each in account.ask(_DESCRIBE_VOLUMES, Filters=[*_owned(cluster), free])["Volumes"]:
        yield each["VolumeId"], f"{each['Size']} GiB"


def _groups(account: Account, cluster: str) -> Iterator[tuple[str, str]]:
    for each in account.ask(_DESCRIBE_GROUPS, Filters=_owned(cluster))["SecurityGroups"]:
        yield each["GroupId"], each["GroupName"]


_DESCRIBE_INSTANCES = Action("ec2", "DescribeInstances")
_DESCRIBE_BALANCERS = Action("elbv2", "DescribeLoadBalancers")
_DESCRIBE_TAGS = Action("elbv2", "DescribeTags")
_DESCRIBE_INTERFACES = Action("ec2", "DescribeNetworkInterfaces")
_DESCRIBE_TEMPLATES = Action("ec2", "DescribeLaunchTemplates")
_DESCRIBE_VOLUMES = Action("ec2", "DescribeVolumes")
_DESCRIBE_GROUPS = Action("ec2", "DescribeSecurityGroups")

_SOURCES: tuple[_Source, ...] = (
    _Source(
        "load balancer",
        _DESCRIBE_BALANCERS,
        Action("elbv2", "DeleteLoadBalancer"),
        _balancers,
        lambda arn: {"LoadBalancerArn": arn},
    ),
    _Source(
        "instance",
        _DESCRIBE_INSTANCES,
        Action("ec2", "TerminateInstances"),
        _instances,
        lambda identity: {"InstanceIds": [identity]},
    ),
    _Source(
        "launch template",
        _DESCRIBE_TEMPLATES,
        Action("ec2", "DeleteLaunchTemplate"),
        _templates,
        lambda identity: {"LaunchTemplateId": identity},
    ),
    _Source(
        "network interface",
        _DESCRIBE_INTERFACES,
        Action("ec2", "DeleteNetworkInterface"),
        _interfaces,
        lambda identity: {"NetworkInterfaceId": identity},
    ),
    _Source(
        "volume",
        _DESCRIBE_VOLUMES,
        Action("ec2", "DeleteVolume"),
        _volumes,
        lambda identity: {"VolumeId": identity},
    ),
    _Source(
        "security group",
        _DESCRIBE_GROUPS,
        Action("ec2", "DeleteSecurityGroup"),
        _groups,
        lambda identity: {"GroupId": identity},
    ),
)
