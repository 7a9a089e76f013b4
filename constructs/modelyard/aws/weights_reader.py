"""The role with which model servers stream weights from S3."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import WEIGHTS_READER


class WeightsReader(Construct):
    """A role that lets the pods of one service account read some buckets and do nothing else.

    One for all models: a role per model would make the template grow with the catalogue.

    Args:
        cluster_name: The EKS cluster.
        buckets: Buckets to read.
        namespace: Namespace of the model servers.
        service_account: Service account of the servers that stream weights.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        buckets: Sequence[s3.IBucket],
        namespace: str = "models",
        service_account: str = WEIGHTS_READER,
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = PodIdentityRole(self, "Role", description="Model servers: stream weights")
        """IAM role of those servers."""
        allow_reading(self.role, buckets)
        self.role.associate(cluster_name=cluster_name, namespace=namespace, service_account=service_account)


def allow_reading(role: iam.Role, buckets: Sequence[s3.IBucket]) -> None:
    """Allow listing and reading `buckets`, action by action; the construct's own grant uses wildcards."""
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:GetBucketLocation", "s3:ListBucket"],
            resources=[bucket.bucket_arn for bucket in buckets],
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:GetObject", "s3:GetObjectVersion"],
            resources=[bucket.arn_for_objects("*") for bucket in buckets],
        )
    )
