"""The bucket that carries the rendered tree from `cdk deploy` to the cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_deployment as s3_deployment
from constructs import Construct

from modelyard.aws.audit_log import AuditLog
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.aws.tree_archive import archive


class Delivery(Construct):
    """A versioned bucket and the rendered tree in it.

    The upload is not atomic: Flux may read the bucket during the upload, and reads it again within a minute.
    Every folder of the tree lists its files in a `kustomization.yaml`, and a build with a missing file
    changes nothing in the cluster. The bucket mirrors the tree: all other objects are deleted, but stay as
    old versions.

    Args:
        tree: The rendered folder of one environment.
        writers: ARNs of the principals that may write the bucket besides the upload of a deploy; default:
        everybody
            whom IAM allows.
        log_retention_days: Days for which the logs of the upload are kept.
        removal_policy: What happens to bucket and logs when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        tree: Path,
        writers: Sequence[str] = (),
        log_retention_days: int = 90,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.bucket = PrivateBucket(
            self,
            "Tree",
            # Long enough to see last quarter's deployments. SSE-S3: the tree holds no secret values, by
            # construction, and a KMS key would add a way to fail.
            old_versions_days=90,
            # A bucket with versions must be emptied before it can be deleted: see docs/adr/0003.
            removal_policy=removal_policy,
        )
        """The bucket that Flux reads."""
        with tempfile.TemporaryDirectory() as scratch:  # CDK copies it at once
            self.upload = s3_deployment.BucketDeployment(
                self,
                "Upload",
                destination_bucket=self.bucket,
                sources=[s3_deployment.Source.asset(str(archive(tree, Path(scratch) / "tree.zip")))],
                prune=True,
                # Deleting only this resource keeps the delivered objects.
                retain_on_delete=True,
                memory_limit=256,
                log_group=AuditLog(
                    self, "UploadLog", retention_days=log_retention_days, removal_policy=removal_policy
                ),
            )
            """Resources that need the complete tree in the bucket depend on it."""
        if writers:
            self.bucket.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="Writers",
                    effect=iam.Effect.DENY,
                    principals=[iam.AnyPrincipal()],
                    actions=["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"],
                    resources=[self.bucket.arn_for_objects("*")],
                    # Of a session this is the role that was assumed.
                    conditions={
                        "ArnNotEquals": {"aws:PrincipalArn": [self.upload.handler_role.role_arn, *writers]}
                    },
                )
            )
