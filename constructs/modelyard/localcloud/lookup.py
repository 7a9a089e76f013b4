"""boto3 lookups of a resource per CloudFormation type, which verify the level `created`.

A finder returns the physical ids that exist. A type without a finder is `unchecked`, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelyard.localcloud.endpoint import Clients, values


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A resource to look up; `detail`: what the journal recorded about its location."""

    type: str
    physical_id: str
    detail: Mapping[str, Any] = field(default_factory=dict)


Finder = Callable[[Clients, Sequence[Subject]], set[str]]


def find(clients: Clients, subjects: Mapping[str, Subject]) -> tuple[set[str], set[str]]:
    """The keys of resources that exist, and of those without a lookup."""
    by_type: dict[str, dict[str, Subject]] = {}
    for key, subject in subjects.items():
        by_type.setdefault(subject.type, {})[key] = subject
    existing: set[str] = set()
    unchecked: set[str] = set()
    for type_name, group in by_type.items():
        finder = _FINDERS.get(type_name)
        if finder is None:
            unchecked.update(group)
            continue
        ids = finder(clients, list(group.values()))
        existing.update(key for key, subject in group.items() if subject.physical_id in ids)
    return existing, unchecked


def _listed(service: str, operation: str, path: str, **parameters: Any) -> Finder:
    return lambda clients, _: set(values(clients, service, operation, path, **parameters))


def _each(exists: Callable[[Clients, Subject], bool]) -> Finder:
    """For types without a listing: get them one at a time; a refusal means that it does not exist."""

    def finder(clients: Clients, subjects: Sequence[Subject]) -> set[str]:
        from botocore.exceptions import ClientError  # type: ignore[import-untyped]

        found = set()
        for subject in subjects:
            try:
                if exists(clients, subject):
                    found.add(subject.physical_id)
            except (ClientError, KeyError):  # without the journal's detail the location is unknown
                continue
        return found

    return finder


def clusters(clients: Clients) -> list[str]:
    return [str(name) for name in values(clients, "eks", "list_clusters", "clusters")]


def _per_cluster(operation: str, path: str, identify: Callable[[str, str], str]) -> Finder:
    def finder(clients: Clients, _: Sequence[Subject]) -> set[str]:
        return {
            identify(cluster, value)
            for cluster in clusters(clients)
            for value in values(clients, "eks", operation, path, clusterName=cluster)
        }

    return finder


def living_keys(clients: Clients, _: Sequence[Subject] = ()) -> set[str]:
    """Keys that are not deleted: a deleted key stays as PendingDeletion for days."""
    kms = clients.get("kms")
    keys = values(clients, "kms", "list_keys", "Keys[].KeyId")
    states = {key: kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] for key in keys}
    return {key for key, state in states.items() if state != "PendingDeletion"}


def _routes(clients: Clients, _: Sequence[Subject]) -> set[str]:
    found = set()
    for table in values(clients, "ec2", "describe_route_tables", "RouteTables[]"):
        for route in table.get("Routes", []):
            for destination in (
                "DestinationCidrBlock",
                "DestinationIpv6CidrBlock",
                "DestinationPrefixListId",
            ):
                if destination in route:
                    found.add(f"{table['RouteTableId']}|{route[destination]}")
    return found


def _attached(clients: Clients, subject: Subject) -> bool:
    gateways = values(clients, "ec2", "describe_internet_gateways", "InternetGateways[]")
    return any(
        gateway["InternetGatewayId"] == subject.detail.get("InternetGatewayId")
        and any(item["VpcId"] == subject.detail.get("VpcId") for item in gateway.get("Attachments", []))
        for gateway in gateways
    )


def _inline_policy(clients: Clients, subject: Subject) -> bool:
    iam, name = clients.get("iam"), subject.detail["PolicyName"]
    for role in subject.detail.get("Roles", []):
        iam.get_role_policy(RoleName=role, PolicyName=name)
    for user in subject.detail.get("Users", []):
        iam.get_user_policy(UserName=user, PolicyName=name)
    for group in subject.detail.get("Groups", []):
        iam.get_group_policy(GroupName=group, PolicyName=name)
    return True


def _queue_policy(clients: Clients, subject: Subject) -> bool:
    sqs = clients.get("sqs")
    return all(
        "Policy" in sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Policy"]).get("Attributes", {})
        for queue in subject.detail["Queues"]
    )


def _topic_policy(clients: Clients, subject: Subject) -> bool:
    sns = clients.get("sns")
    return all(
        "Policy" in sns.get_topic_attributes(TopicArn=topic)["Attributes"]
        for topic in subject.detail["Topics"]
    )


def _deployed_files(clients: Clients, subject: Subject) -> bool:
    found = values(clients, "s3", "list_objects_v2", "Contents[].Key", Bucket=subject.detail["bucket"])
    return set(subject.detail["keys"]) <= set(found)


def _answers(service: str, operation: str, parameter: str, key: str = "") -> Finder:
    """It exists if the get call succeeds; `key`: the name's key in the journal."""

    def exists(clients: Clients, subject: Subject) -> bool:
        name = subject.detail[key] if key else subject.physical_id
        getattr(clients.get(service), operation)(**{parameter: name})
        return True

    return _each(exists)


def mount_targets(clients: Clients, _: Sequence[Subject] = ()) -> set[str]:
    return {
        target
        for file_system in values(clients, "efs", "describe_file_systems", "FileSystems[].FileSystemId")
        for target in values(
            clients, "efs", "describe_mount_targets", "MountTargets[].MountTargetId", FileSystemId=file_system
        )
    }


def budgets(clients: Clients, _: Sequence[Subject] = ()) -> set[str]:
    found = values(clients, "budgets", "describe_budgets", "Budgets[].BudgetName", AccountId=clients.account)
    return {str(name) for name in found}


def _in_s3_file_systems(operation: str, path: str) -> Finder:
    def finder(clients: Clients, _: Sequence[Subject]) -> set[str]:
        return {
            str(value)
            for system in values(clients, "s3files", "list_file_systems", "fileSystems[].fileSystemId")
            for value in values(clients, "s3files", operation, path, fileSystemId=system)
        }

    return finder


def _layer(clients: Clients, subject: Subject) -> bool:
    clients.get("lambda").get_layer_version_by_arn(Arn=subject.physical_id)
    return True


_RULES = _listed("ec2", "describe_security_group_rules", "SecurityGroupRules[].SecurityGroupRuleId")

_FINDERS: dict[str, Finder] = {
    "AWS::Budgets::Budget": budgets,
    "AWS::CloudWatch::Alarm": _listed("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    "AWS::CloudWatch::Dashboard": _listed(
        "cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"
    ),
    "AWS::EC2::EIP": _listed("ec2", "describe_addresses", "Addresses[].PublicIp"),
    "AWS::EC2::FlowLog": _listed("ec2", "describe_flow_logs", "FlowLogs[].FlowLogId"),
    "AWS::EC2::InternetGateway": _listed(
        "ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"
    ),
    "AWS::EC2::LaunchTemplate": _listed(
        "ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateId"
    ),
    "AWS::EC2::NatGateway": _listed(
        "ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"
    ),
    "AWS::EC2::Route": _routes,
    "AWS::EC2::RouteTable": _listed("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    "AWS::EC2::SecurityGroup": _listed("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    "AWS::EC2::SecurityGroupEgress": _RULES,
    "AWS::EC2::SecurityGroupIngress": _RULES,
    "AWS::EC2::Subnet": _listed("ec2", "describe_subnets", "Subnets[].SubnetId"),
    "AWS::EC2::SubnetRouteTableAssociation": _listed(
        "ec2", "describe_route_tables", "RouteTables[].Associations[].RouteTableAssociationId"
    ),
    "AWS::EC2::VPC": _listed("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    "AWS::EC2::VPCEndpoint": _listed("ec2", "describe_vpc_endpoints", "VpcEndpoints[].VpcEndpointId"),
    "AWS::EC2::VPCGatewayAttachment": _each(_attached),
    "AWS::ECR::Repository": _listed("ecr", "describe_repositories", "repositories[].repositoryName"),
    "AWS::EFS::AccessPoint": _listed("efs", "describe_access_points", "AccessPoints[].AccessPointId"),
    "AWS::EFS::FileSystem": _listed("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::EFS::MountTarget": mount_targets,
    "AWS::EKS::AccessEntry": _per_cluster("list_access_entries", "accessEntries", "{}|{}".format),
    "AWS::EKS::Addon": _per_cluster("list_addons", "addons", "{}|{}".format),
    "AWS::EKS::Cluster": _listed("eks", "list_clusters", "clusters"),
    "AWS::EKS::Nodegroup": _per_cluster("list_nodegroups", "nodegroups", lambda _, name: name),
    "AWS::EKS::PodIdentityAssociation": _per_cluster(
        "list_pod_identity_associations", "associations[].associationArn", lambda _, arn: arn
    ),
    "AWS::Events::Rule": _listed("events", "list_rules", "Rules[].[Name, Arn][]"),
    "AWS::IAM::InstanceProfile": _listed(
        "iam", "list_instance_profiles", "InstanceProfiles[].[InstanceProfileName, Arn][]"
    ),
    "AWS::IAM::ManagedPolicy": _listed("iam", "list_policies", "Policies[].Arn", Scope="Local"),
    "AWS::IAM::Policy": _each(_inline_policy),
    "AWS::IAM::Role": _listed("iam", "list_roles", "Roles[].RoleName"),
    "AWS::KMS::Alias": _listed("kms", "list_aliases", "Aliases[].AliasName"),
    "AWS::KMS::Key": living_keys,
    "AWS::Lambda::Function": _listed("lambda", "list_functions", "Functions[].FunctionName"),
    "AWS::Lambda::LayerVersion": _each(_layer),
    "AWS::Lambda::Permission": _answers("lambda", "get_policy", "FunctionName", "FunctionName"),
    "AWS::Logs::LogGroup": _listed("logs", "describe_log_groups", "logGroups[].logGroupName"),
    "AWS::S3::Bucket": _listed("s3", "list_buckets", "Buckets[].Name"),
    "AWS::S3::BucketPolicy": _answers("s3", "get_bucket_policy", "Bucket", "Bucket"),
    "AWS::S3Files::AccessPoint": _in_s3_file_systems("list_access_points", "accessPoints[].accessPointId"),
    "AWS::S3Files::FileSystem": _listed("s3files", "list_file_systems", "fileSystems[].fileSystemId"),
    "AWS::S3Files::MountTarget": _in_s3_file_systems("list_mount_targets", "mountTargets[].mountTargetId"),
    "AWS::SNS::Subscription": _listed("sns", "list_subscriptions", "Subscriptions[].SubscriptionArn"),
    "AWS::SNS::Topic": _listed("sns", "list_topics", "Topics[].TopicArn"),
    "AWS::SNS::TopicPolicy": _each(_topic_policy),
    "AWS::SQS::Queue": _listed("sqs", "list_queues", "QueueUrls"),
    "AWS::SQS::QueuePolicy": _each(_queue_policy),
    "AWS::SSM::Parameter": _listed("ssm", "describe_parameters", "Parameters[].Name"),
    "AWS::SecretsManager::Secret": _listed("secretsmanager", "list_secrets", "SecretList[].[ARN, Name][]"),
    "Custom::CDKBucketDeployment": _each(_deployed_files),
}
