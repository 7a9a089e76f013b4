"""Resources that a cluster may leave in an account when its controllers were deleted too early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modelyard.live.api.aws import Account, Operation
from modelyard.names import NODE_POOL_LABEL

_STACK = "aws:cloudformation:stack-id"
_BALANCER_TAGS = 20  # maximum resources per DescribeTags call


class LeftoverKind(StrEnum):
    LOAD_BALANCER = "load balancer"
    CLASSIC_LOAD_BALANCER = "classic load balancer"
    INSTANCE = "instance"
    LAUNCH_TEMPLATE = "launch template"
    NETWORK_INTERFACE = "network interface"
    VOLUME = "volume"
    SECURITY_GROUP = "security group"


@dataclass(frozen=True)
class Leftover:
    """A resource that costs money or blocks the deletion of a network. `id` is what its delete call takes."""

    kind: LeftoverKind
    id: str
    detail: str


@dataclass(frozen=True)
class _Found:
    id: str
    detail: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class _Source:
    """How to find and delete one kind of resource."""

    look: Callable[[Account, str], Iterable[_Found]]
    remove: Operation
    parameters: Callable[[str], Mapping[str, Any]]


def find_leftovers(account: Account, cluster: str) -> list[Leftover]:
    """Resources with the cluster's tags that belong to no stack, in deletion order.

    Raises:
        Unanswered: AWS does not answer.
    """
    found = []
    for kind, source in _SOURCES.items():
        things = {each.id: each for each in source.look(account, cluster) if _is_of(each.tags, cluster)}
        found += [Leftover(kind, each.id, each.detail) for each in things.values()]
    return found


def delete(account: Account, leftover: Leftover) -> None:
    """Delete it.

    Raises:
        Unanswered: AWS refuses.
    """
    source = _SOURCES[leftover.kind]
    account.ask(source.remove, **source.parameters(leftover.id))


def _is_of(tags: Mapping[str, str], cluster: str) -> bool:
    """Whether Karpenter, the VPC CNI, or a load balancer or volume controller created it for the cluster.

    API filters already select by tag, where they exist; this is checked again before anything is deleted.
    """
    marks = {
        "eks:eks-cluster-name": cluster,
        "karpenter.k8s.aws/cluster": cluster,
        "elbv2.k8s.aws/cluster": cluster,
        "cluster.k8s.amazonaws.com/name": cluster,
        f"kubernetes.io/cluster/{cluster}": "owned",
    }
    return _STACK not in tags and any(tags.get(key) == value for key, value in marks.items())


def _tags(described: Mapping[str, Any], key: str = "Tags") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in described.get(key, ())}


def _owned(cluster: str) -> dict[str, Any]:
    return {"Name": f"tag:kubernetes.io/cluster/{cluster}", "Values": ["owned"]}


def _named(key: str, cluster: str) -> dict[str, Any]:
    return {"Name": f"tag:{key}", "Values": [cluster]}


_AVAILABLE = {"Name": "status", "Values": ["available"]}


def _balancers(account: Account, cluster: str) -> Iterator[_Found]:
    arns = [
        each["LoadBalancerArn"]
        for each in account.ask(Operation("elbv2", "DescribeLoadBalancers"))["LoadBalancers"]
    ]
    for start in range(0, len(arns), _BALANCER_TAGS):
        asked = arns[start : start + _BALANCER_TAGS]
        for each in account.ask(Operation("elbv2", "DescribeTags"), ResourceArns=asked)["TagDescriptions"]:
            yield _Found(each["ResourceArn"], each["ResourceArn"].split("loadbalancer/")[-1], _tags(each))


def _classic_balancers(account: Account, cluster: str) -> Iterator[_Found]:
    described = account.ask(Operation("elb", "DescribeLoadBalancers")).get("LoadBalancerDescriptions", [])
    names = [each["LoadBalancerName"] for each in described]
    for start in range(0, len(names), _BALANCER_TAGS):
        asked = names[start : start + _BALANCER_TAGS]
        for each in account.ask(Operation("elb", "DescribeTags"), LoadBalancerNames=asked)["TagDescriptions"]:
            yield _Found(each["LoadBalancerName"], "classic", _tags(each))


def _instances(account: Account, cluster: str) -> Iterator[_Found]:
    alive = {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}
    # Nodes of a managed node group belong to the group: only nodes launched by Karpenter have this tag.
    launched = {"Name": "tag-key", "Values": [NODE_POOL_LABEL]}
    filters = [_owned(cluster), launched, alive]
    for reservation in account.ask(Operation("ec2", "DescribeInstances"), Filters=filters)["Reservations"]:
        for each in reservation["Instances"]:
            state = f"{each['InstanceType']}, {each['State']['Name']}"
            yield _Found(each["InstanceId"], state, _tags(each))


def _templates(account: Account, cluster: str) -> Iterator[_Found]:
    for mark in (_named("karpenter.k8s.aws/cluster", cluster), _named("eks:eks-cluster-name", cluster)):
        answer = account.ask(Operation("ec2", "DescribeLaunchTemplates"), Filters=[mark])
        for each in answer["LaunchTemplates"]:
            yield _Found(each["LaunchTemplateId"], each["LaunchTemplateName"], _tags(each))


def _interfaces(account: Account, cluster: str) -> Iterator[_Found]:
    filters = [_named("cluster.k8s.amazonaws.com/name", cluster), _AVAILABLE]
    answer = account.ask(Operation("ec2", "DescribeNetworkInterfaces"), Filters=filters)
    for each in answer["NetworkInterfaces"]:
        yield _Found(each["NetworkInterfaceId"], each.get("Description", ""), _tags(each, "TagSet"))


def _volumes(account: Account, cluster: str) -> Iterator[_Found]:
    # The second mark is that of EKS Auto Mode's own driver.
    for mark in (_owned(cluster), _named("eks:eks-cluster-name", cluster)):
        answer = account.ask(Operation("ec2", "DescribeVolumes"), Filters=[mark, _AVAILABLE])
        for each in answer["Volumes"]:
            claim = _tags(each).get("kubernetes.io/created-for/pvc/name")
            detail = f"{each['Size']} GiB" + (f" of claim {claim}" if claim else "")
            yield _Found(each["VolumeId"], detail, _tags(each))


def _groups(account: Account, cluster: str) -> Iterator[_Found]:
    for mark in (_owned(cluster), _named("elbv2.k8s.aws/cluster", cluster)):
        for each in account.ask(Operation("ec2", "DescribeSecurityGroups"), Filters=[mark])["SecurityGroups"]:
            yield _Found(each["GroupId"], each["GroupName"], _tags(each))


_SOURCES: Mapping[LeftoverKind, _Source] = {
    LeftoverKind.LOAD_BALANCER: _Source(
        _balancers, Operation("elbv2", "DeleteLoadBalancer"), lambda arn: {"LoadBalancerArn": arn}
    ),
    LeftoverKind.CLASSIC_LOAD_BALANCER: _Source(
        _classic_balancers, Operation("elb", "DeleteLoadBalancer"), lambda name: {"LoadBalancerName": name}
    ),
    LeftoverKind.INSTANCE: _Source(
        _instances, Operation("ec2", "TerminateInstances"), lambda each: {"InstanceIds": [each]}
    ),
    LeftoverKind.LAUNCH_TEMPLATE: _Source(
        _templates, Operation("ec2", "DeleteLaunchTemplate"), lambda each: {"LaunchTemplateId": each}
    ),
    LeftoverKind.NETWORK_INTERFACE: _Source(
        _interfaces, Operation("ec2", "DeleteNetworkInterface"), lambda each: {"NetworkInterfaceId": each}
    ),
    LeftoverKind.VOLUME: _Source(_volumes, Operation("ec2", "DeleteVolume"), lambda each: {"VolumeId": each}),
    LeftoverKind.SECURITY_GROUP: _Source(
        _groups, Operation("ec2", "DeleteSecurityGroup"), lambda each: {"GroupId": each}
    ),
}
"""Order: resources that hold network interfaces first, then those that they hold."""
