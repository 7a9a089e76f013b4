"""A listing of the embedded AWS through boto3 alone, independent of the stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelyard.localcloud.endpoint import Clients, values
from modelyard.localcloud.lookup import budgets, clusters, living_keys, mount_targets

_BOOTSTRAP = ("cdk-hnb659fds-", "/cdk-bootstrap/")  # resources of `cdk bootstrap` are not the app's


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All resources of one kind."""

    kind: str
    names: tuple[str, ...]


def take(clients: Clients) -> list[Listing]:
    """All kinds, including empty ones: zero is an answer."""
    return [
        Listing(
            kind=kind,
            names=tuple(sorted(name for name in names(clients) if not name.startswith(_BOOTSTRAP))),
        )
        for kind, names in _KINDS.items()
    ]


def _all(service: str, operation: str, path: str, **parameters: Any) -> Callable[[Clients], list[str]]:
    return lambda clients: [str(v) for v in values(clients, service, operation, path, **parameters)]


def _in_clusters(operation: str, path: str) -> Callable[[Clients], list[str]]:
    return lambda clients: [
        str(value)
        for cluster in clusters(clients)
        for value in values(clients, "eks", operation, path, clusterName=cluster)
    ]


def _networks(clients: Clients) -> list[str]:
    # Every account has a default VPC, also the embedded one.
    return [str(v) for v in values(clients, "ec2", "describe_vpcs", "Vpcs[?!IsDefault].VpcId")]


def _in_networks(operation: str, path: str) -> Callable[[Clients], list[str]]:
    def names(clients: Clients) -> list[str]:
        mine = [{"Name": "vpc-id", "Values": _networks(clients)}]
        return (
            [str(v) for v in values(clients, "ec2", operation, path, Filters=mine)]
            if mine[0]["Values"]
            else []
        )

    return names


def _buckets(clients: Clients) -> list[str]:
    return [
        f"{bucket} ({len(values(clients, 's3', 'list_objects_v2', 'Contents[].Key', Bucket=bucket))} objects)"
        for bucket in values(clients, "s3", "list_buckets", "Buckets[].Name")
    ]


_KINDS: dict[str, Callable[[Clients], list[str]]] = {
    "VPCs": _networks,
    "subnets": _in_networks("describe_subnets", "Subnets[].CidrBlock"),
    "NAT gateways": _all("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    "elastic addresses": _all("ec2", "describe_addresses", "Addresses[].PublicIp"),
    "VPC endpoints": _all("ec2", "describe_vpc_endpoints", "VpcEndpoints[].ServiceName"),
    "flow logs": _all("ec2", "describe_flow_logs", "FlowLogs[].LogDestination"),
    "log groups": _all("logs", "describe_log_groups", "logGroups[].logGroupName"),
    "EKS clusters": clusters,
    "node groups": _in_clusters("list_nodegroups", "nodegroups"),
    "add-ons": _in_clusters("list_addons", "addons"),
    "access entries": _in_clusters("list_access_entries", "accessEntries"),
    "pod identity associations": _in_clusters(
        "list_pod_identity_associations", "associations[].join('/', [namespace, serviceAccount])"
    ),
    "launch templates": _all("ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    "IAM roles": _all("iam", "list_roles", "Roles[].RoleName"),
    "IAM policies": _all("iam", "list_policies", "Policies[].PolicyName", Scope="Local"),
    "instance profiles": _all("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    "KMS keys": lambda clients: sorted(living_keys(clients)),
    "file systems": _all("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    "mount targets": lambda clients: sorted(mount_targets(clients)),
    "access points": _all("efs", "describe_access_points", "AccessPoints[].RootDirectory.Path"),
    "S3 file systems": _all("s3files", "list_file_systems", "fileSystems[].fileSystemId"),
    "buckets": _buckets,
    "functions": _all("lambda", "list_functions", "Functions[].FunctionName"),
    "secrets": _all("secretsmanager", "list_secrets", "SecretList[].Name"),
    "parameters": _all("ssm", "describe_parameters", "Parameters[].Name"),
    "queues": _all("sqs", "list_queues", "QueueUrls"),
    "event rules": _all("events", "list_rules", "Rules[].Name"),
    "topics": _all("sns", "list_topics", "Topics[].TopicArn"),
    "alarms": _all("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    "budgets": lambda clients: sorted(budgets(clients)),
    "dashboards": _all("cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
}
