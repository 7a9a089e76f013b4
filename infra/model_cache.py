"""Stack `ModelCache`: the weights, separate from the cluster so that either can outlive the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Acknowledgment, Annotations, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.cluster import efs_driver_role, nodes_security_group
from infra.environment_stack import EnvironmentStack
from infra.network import vpc_of
from modelyard.aws.lustre_cache import LustreCache
from modelyard.aws.model_cache import EfsCache
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.aws.s3_files_cache import S3FilesCache
from modelyard.aws.weights_reader import WeightsReader
from modelyard.names import ACCESS_POINT_ID, DNS_NAME, FILE_SYSTEM_ID, MODEL_CACHE, MOUNT_NAME, WEIGHTS_READER
from modelyard.spec import Environment

HANDED_OVER: Final[Mapping[str, tuple[str, ...]]] = {
    "efs": (FILE_SYSTEM_ID, ACCESS_POINT_ID),
    "s3-files": (FILE_SYSTEM_ID, ACCESS_POINT_ID),
    "lustre": (FILE_SYSTEM_ID, DNS_NAME, MOUNT_NAME),
}
"""Attributes of the file system that the rendered tree needs, by kind."""


class ModelCacheStack(EnvironmentStack):
    concern = MODEL_CACHE

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: weights, shared by all replicas"
        )
        cache = settings.cache
        buckets = [s3.Bucket.from_bucket_name(self, f"Bucket-{name}", name) for name in cache.read_buckets]
        ours = None
        if cache.weights_bucket or cache.file_system == "s3-files":
            # SSE-S3: weights are not secret, and with a KMS key every reader would need a grant. S3 Files
            # needs versioning, which also allows restoring an overwritten checkpoint.
            ours = PrivateBucket(
                self,
                "Weights",
                name=settings.weights_bucket,
                old_versions_days=30,
                removal_policy=self.removal_policy,
            )
            buckets.append(ours)
        if buckets:
            WeightsReader(
                self,
                "Reader",
                cluster_name=settings.cluster_name,
                namespace=settings.namespace,
                service_account=WEIGHTS_READER,
                buckets=buckets,
            )
        if cache.file_system_id is None:
            for key, value in self._file_system(ours).items():
                self.publish(key, value)

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether there is anything to create."""
        cache = settings.cache
        return cache.file_system_id is None or cache.weights_bucket or bool(cache.read_buckets)

    def _file_system(self, bucket: s3.IBucket | None) -> dict[str, str]:
        settings, cache = self.settings, self.settings.cache
        vpc = vpc_of(self)
        clients = nodes_security_group(self)
        if cache.file_system == "s3-files":
            assert bucket is not None
            files = S3FilesCache(
                self,
                "Cache",
                vpc=vpc,
                subnets=vpc.private_subnets,
                clients=clients,
                bucket=bucket,
                cluster_name=settings.cluster_name,
                removal_policy=self.removal_policy,
            )
            return {
                FILE_SYSTEM_ID: files.file_system.attr_file_system_id,
                ACCESS_POINT_ID: files.access_point.attr_access_point_id,
            }
        if cache.file_system == "lustre":
            return self._lustre(vpc, clients)
        shared = EfsCache(
            self,
            "Cache",
            vpc=vpc,
            subnets=vpc.private_subnets,
            clients=clients,
            driver_role=efs_driver_role(self) if settings.mounts_by_role else None,
            backups=settings.removal == "retain" if cache.backups is None else cache.backups,
            removal_policy=self.removal_policy,
        )
        return {
            FILE_SYSTEM_ID: shared.file_system.file_system_id,
            ACCESS_POINT_ID: shared.access_point.access_point_id,
        }

    def _lustre(self, vpc: ec2.IVpc, clients: ec2.ISecurityGroup) -> dict[str, str]:
        cache = self.settings.cache
        lustre = LustreCache(
            self,
            "Cache",
            vpc=vpc,
            subnet=vpc.private_subnets[0],
            clients=clients,
            size_gib=cache.size_gib,
            mb_per_second_per_tib=cache.lustre_mb_per_second_per_tib,
            removal_policy=self.removal_policy,
        )
        Validations.of(self).acknowledge(
            Acknowledgment(
                id="CloudFormation-Validate::W2001",
                reason="Lustre has one subnet; those of the other zones go unused",
            )
        )
        # EKS' cluster security group allows all egress, and responses need no rule.
        Annotations.of(self).acknowledge_warning("@aws-cdk/aws-ec2:ipv4IgnoreEgressRule")
        return {
            FILE_SYSTEM_ID: lustre.file_system.file_system_id,
            DNS_NAME: lustre.file_system.dns_name,
            MOUNT_NAME: lustre.file_system.mount_name,
        }
