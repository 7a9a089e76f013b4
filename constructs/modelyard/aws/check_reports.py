"""Where the jobs that ask the models put what they found, for whoever is outside of the cluster."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.names import CHECKS_ACCOUNT


class CheckReports(Construct):
    """A bucket, and a role for the pods of one service account that may put objects into it and do nothing
    else.

    Not the bucket that Flux reads: a report would be a new revision of it, and no pod may write what is
    applied. One role for all models: an identity for each would make the template grow with the catalogue.

    Args:
        cluster_name: The EKS cluster.
        namespace: Namespace of the jobs.
        service_account: Service account of the jobs.
        removal_policy: What becomes of the bucket when its stack goes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str = "models",
        service_account: str = CHECKS_ACCOUNT,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = PrivateBucket(
            self,
            "Bucket",
            # S3's own key: the lookup role of `cdk bootstrap`, which reads the reports, is denied
            # kms:Decrypt. Reports do not expire: a model that nobody changes is not asked again, and its last
            # report is the verdict on it.
            old_versions_days=90,
            removal_policy=removal_policy,
        )
        """Where the reports are, one JSON file a model and kind of job."""
        self.role = PodIdentityRole(self, "Role", description="Checks of the models: put reports")
        """What the jobs are in AWS."""
        self.role.add_to_policy(
            iam.PolicyStatement(actions=["s3:PutObject"], resources=[self.bucket.arn_for_objects("*/*.json")])
        )
        self.association: eks.CfnPodIdentityAssociation = self.role.associate(
            cluster_name=cluster_name, namespace=namespace, service_account=service_account
        )
        """Has to be there before the first job starts."""
