"""Types of services that the embedded AWS does not have: accepted, recorded in the journal, listed
nowhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar

from modelyard.localcloud.journal import EmulationLevel
from modelyard.localcloud.plugin.resource_type import (
    Aws,
    Made,
    Properties,
    RefusedRequest,
    ResourceAddress,
    ResourceType,
    given,
)


class _Recorded(ResourceType):
    """One type. Only references to existing services are checked."""

    level = EmulationLevel.RECORDED
    kept: ClassVar[tuple[str, ...]]  # properties that describe it
    why: ClassVar[str]

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        self.check(aws, properties)
        digest = hashlib.sha256(f"{place.stack}/{place.logical_id}".encode()).hexdigest()
        return self._made(self.identity(aws, digest, properties), aws, properties)

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        self.check(aws, new)
        return self._made(physical_id, aws, new)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        """Only the record exists."""

    def check(self, aws: Aws, properties: Properties) -> None:
        """Raise if a referenced resource does not exist."""

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        raise NotImplementedError

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {}

    def _made(self, physical_id: str, aws: Aws, properties: Properties) -> Made:
        detail = {**given(properties, *self.kept), "note": self.why}
        return Made(physical_id, self.attributes(aws, physical_id, properties), detail)


class MetricsWorkspace(_Recorded):
    name = "AWS::APS::Workspace"
    kept = ("Alias", "KmsKeyArn")
    why = "no Managed Prometheus here"

    def check(self, aws: Aws, properties: Properties) -> None:
        aws.client("kms").describe_key(KeyId=properties["KmsKeyArn"])

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return aws.arn("aps", f"workspace/ws-{digest[:8]}-{digest[8:12]}-{digest[12:16]}")

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        workspace = physical_id.rpartition("/")[2]
        return {
            "Arn": physical_id,
            "WorkspaceId": workspace,
            "PrometheusEndpoint": f"https://aps-workspaces.{aws.region}.amazonaws.com/workspaces/{workspace}/",
        }


class GrafanaWorkspace(_Recorded):
    name = "AWS::Grafana::Workspace"
    kept = ("Name", "AuthenticationProviders", "DataSources")
    why = "no Managed Grafana here"

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return f"g-{digest[:10]}"

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"Id": physical_id, "Endpoint": f"{physical_id}.grafana-workspace.{aws.region}.amazonaws.com"}


class _CostExplorer(_Recorded):
    """Monitor and subscription; both are identified by their ARN."""

    why = "no Cost Explorer here"
    part: ClassVar[str]

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return f"arn:aws:ce::{aws.account}:{self.part}/{digest[:8]}-{digest[8:12]}-{digest[12:16]}"


class AnomalyMonitor(_CostExplorer):
    """The embedded account is a member of an organisation, as an environment's account should be: monitors
    of tags are the payer's alone (Cost Management guide, getting started with anomaly detection). A second
    monitor of a dimension is refused in every account, in CloudFormation's words
    (cloudformation-coverage-roadmap 2515)."""

    name = "AWS::CE::AnomalyMonitor"
    kept = ("MonitorName", "MonitorType", "MonitorDimension", "MonitorSpecification")
    part = "anomalymonitor"
    replaced_by = ("MonitorType", "MonitorDimension", "MonitorSpecification")

    def __init__(self) -> None:
        self.existing: dict[str, tuple[str, str]] = {}
        """ARN to its account and dimension."""

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        if properties["MonitorType"] == "CUSTOM":
            raise RefusedRequest(
                "a linked account can create monitors of AWS services only (Status Code: 400)",
                "InvalidRequest",
            )
        dimension = (aws.account, str(properties.get("MonitorDimension")))
        if dimension in self.existing.values():
            raise RefusedRequest("null", "AlreadyExists")
        made = super().create(aws, place, properties)
        self.existing[made.physical_id] = dimension
        return made

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        self.existing.pop(physical_id, None)

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"MonitorArn": physical_id}


class AnomalySubscription(_CostExplorer):
    name = "AWS::CE::AnomalySubscription"
    kept = ("SubscriptionName", "Frequency", "ThresholdExpression")
    part = "anomalysubscription"

    def __init__(self, monitors: AnomalyMonitor) -> None:
        self._monitors = monitors

    def check(self, aws: Aws, properties: Properties) -> None:
        for monitor in properties["MonitorArnList"]:
            if monitor not in self._monitors.existing:
                raise RefusedRequest(f"Unknown monitor: {monitor} (Status Code: 400)", "NotFound")
        for subscriber in properties["Subscribers"]:
            if subscriber["Type"] == "SNS":
                aws.client("sns").get_topic_attributes(TopicArn=subscriber["Address"])

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"SubscriptionArn": physical_id}


class LustreFileSystem(_Recorded):
    name = "AWS::FSx::FileSystem"
    kept = ("FileSystemType", "StorageCapacity", "LustreConfiguration")
    why = "no FSx here"

    def check(self, aws: Aws, properties: Properties) -> None:
        ec2 = aws.client("ec2")
        ec2.describe_subnets(SubnetIds=properties["SubnetIds"])
        ec2.describe_security_groups(GroupIds=properties["SecurityGroupIds"])

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return f"fs-{digest[:17]}"

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {
            "DNSName": f"{physical_id}.fsx.{aws.region}.amazonaws.com",
            "LustreMountName": physical_id[-8:],
            "ResourceARN": aws.arn("fsx", f"file-system/{physical_id}"),
        }


class Capability(_Recorded):
    name = "AWS::EKS::Capability"
    kept = ("ClusterName", "CapabilityName", "Type", "Configuration")
    why = "not executed, there is no Kubernetes API"
    replaced_by = ("ClusterName", "CapabilityName", "Type")

    def check(self, aws: Aws, properties: Properties) -> None:
        aws.client("eks").describe_cluster(name=properties["ClusterName"])
        aws.client("iam").get_role(RoleName=properties["RoleArn"].rpartition("/")[2])

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return f"{properties['ClusterName']}|{properties['CapabilityName']}"

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"Arn": aws.arn("eks", f"capability/{physical_id.replace('|', '/')}")}


class VpcCidrBlock(_Recorded):
    name = "AWS::EC2::VPCCidrBlock"
    kept = ("VpcId", "CidrBlock")
    why = "one range a VPC here; its subnets are made all the same"
    replaced_by = ("VpcId", "CidrBlock")

    def check(self, aws: Aws, properties: Properties) -> None:
        aws.client("ec2").describe_vpcs(VpcIds=[properties["VpcId"]])

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return f"vpc-cidr-assoc-{digest[:17]}"

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"Id": physical_id}


class RepositoryTemplate(_Recorded):
    name = "AWS::ECR::RepositoryCreationTemplate"
    kept = ("Prefix", "AppliedFor", "ImageTagMutability")
    why = "nobody pulls here"
    replaced_by = ("Prefix",)

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return str(properties["Prefix"])

    def attributes(self, aws: Aws, physical_id: str, properties: Properties) -> Mapping[str, Any]:
        return {"CreatedAt": "", "UpdatedAt": ""}


class PullThroughCacheRule(_Recorded):
    """Refused like in ECR: a prefix that has a rule, and credentials that are not there."""

    name = "AWS::ECR::PullThroughCacheRule"
    kept = ("EcrRepositoryPrefix", "UpstreamRegistry", "UpstreamRegistryUrl", "CredentialArn")
    why = "nobody pulls here"
    replaced_by = ("CredentialArn", "EcrRepositoryPrefix", "UpstreamRegistry", "UpstreamRegistryUrl")

    def __init__(self) -> None:
        self.existing: set[tuple[str, str, str]] = set()
        """Account, region and prefix."""

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        prefix = str(properties["EcrRepositoryPrefix"])
        if (key := (aws.account, aws.region, prefix)) in self.existing:
            raise RefusedRequest(
                f"A pull through cache rule with repository prefix '{prefix}' already exists", "AlreadyExists"
            )
        made = super().create(aws, place, properties)
        self.existing.add(key)
        return made

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        self.existing.discard((aws.account, aws.region, physical_id))

    def check(self, aws: Aws, properties: Properties) -> None:
        if secret := properties.get("CredentialArn"):
            aws.client("secretsmanager").describe_secret(SecretId=secret)

    def identity(self, aws: Aws, digest: str, properties: Properties) -> str:
        return str(properties["EcrRepositoryPrefix"])


_MONITORS = AnomalyMonitor()

TYPES: tuple[ResourceType, ...] = (
    MetricsWorkspace(),
    GrafanaWorkspace(),
    _MONITORS,
    AnomalySubscription(_MONITORS),
    LustreFileSystem(),
    Capability(),
    RepositoryTemplate(),
    PullThroughCacheRule(),
    VpcCidrBlock(),
)
"""CloudFormation reports that these exist; boto3 finds none of them, and the closing table says so."""
