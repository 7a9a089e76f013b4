"""Bucket for the reports of the check Jobs, readable from outside the cluster."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.names import CHECKS_ACCOUNT


class CheckReports(Construct):
    """A bucket, and a role that lets the pods of one service account put objects into it and do nothing else.

    Not the bucket that Flux reads: a report would be a new revision of it, and no pod may write what Flux
    applies. One role for all models: a role per model would make the template grow with the catalogue.

    Args:
        cluster_name: The EKS cluster.
        namespace: Namespace of the Jobs.
        service_account: Service account of the Jobs.
        removal_policy: What happens to the bucket when its stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str = "models",
        service_account: str = CHECKS_ACCOUNT,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = PrivateBucket(
            self,
            "Bucket",
            # SSE-S3: the lookup role of `cdk bootstrap` reads the reports, and is denied kms:Decrypt. Reports
            # do not expire: an unchanged model is not checked again, and its last report is its verdict.
            old_versions_days=90,
            removal_policy=removal_policy,
        )
        """One JSON report per model and kind of Job."""
        self.role = PodIdentityRole(self, "Role", description="Checks of the models: put reports")
        """IAM role of the Jobs."""
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["s3:PutObject"], resources=[self.bucket.arn_for_objects("*/*.json")])
        )
        self.association: eks.CfnPodIdentityAssociation = self.role.associate(
            cluster_name=cluster_name, namespace=namespace, service_account=service_account
        )
        """Must exist before the first Job starts."""
