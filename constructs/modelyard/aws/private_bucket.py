"""A bucket with the house defaults."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


class PrivateBucket(s3.Bucket):
    """Encrypted, versioned, reached over TLS alone, open to nobody, and without access control lists.

    Args:
        name: Default: CloudFormation makes one up.
        key: Default: S3's own.
        old_versions_days: Days for which overwritten objects are kept; default: for ever.
        expire_days: Days after which every object leaves; default: never.
        removal_policy: What becomes of the bucket when its stack goes.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str | None = None,
        key: kms.IKey | None = None,
        old_versions_days: int | None = None,
        expire_days: int | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            bucket_name=name,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,  # one call to KMS for many objects
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            versioned=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=_days(expire_days),
                    noncurrent_version_expiration=_days(old_versions_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=removal_policy,
        )


def _days(count: int | None) -> Duration | None:
    return None if count is None else Duration.days(count)
