"""Types with names of our choice: AWS refuses to create a second one, MiniStack takes the first over."""

from __future__ import annotations

from modelyard.localcloud.plugin.resource_type import Aws, CompletedType, Properties, RefusedRequest


class _NamedByTemplate(CompletedType):
    key: str
    """The property that names it; without that, CloudFormation makes a name up."""

    def check_creation(self, aws: Aws, properties: Properties) -> None:
        name = properties.get(self.key)
        if name and self.exists(aws, str(name)):
            raise RefusedRequest(
                f"Resource of type '{self.name}' with identifier '{name}' already exists.", "AlreadyExists"
            )

    def exists(self, aws: Aws, name: str) -> bool:
        raise NotImplementedError


class NamedSecret(_NamedByTemplate):
    name = "AWS::SecretsManager::Secret"
    key = "Name"

    def exists(self, aws: Aws, name: str) -> bool:
        client = aws.client("secretsmanager")
        try:
            client.describe_secret(SecretId=name)
        except client.exceptions.ResourceNotFoundException:
            return False
        return True


class NamedLogGroup(_NamedByTemplate):
    name = "AWS::Logs::LogGroup"
    key = "LogGroupName"

    def exists(self, aws: Aws, name: str) -> bool:
        if name.startswith("/aws/lambda/"):  # of functions, whose made-up names differ each time on AWS only
            return False
        found = aws.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        return any(group["logGroupName"] == name for group in found)


class NamedBucket(_NamedByTemplate):
    name = "AWS::S3::Bucket"
    key = "BucketName"

    def exists(self, aws: Aws, name: str) -> bool:
        return any(bucket["Name"] == name for bucket in aws.client("s3").list_buckets()["Buckets"])


class NamedRole(_NamedByTemplate):
    name = "AWS::IAM::Role"
    key = "RoleName"

    def exists(self, aws: Aws, name: str) -> bool:
        client = aws.client("iam")
        try:
            client.get_role(RoleName=name)
        except client.exceptions.NoSuchEntityException:
            return False
        return True


TYPES = (NamedSecret(), NamedLogGroup(), NamedBucket(), NamedRole())
