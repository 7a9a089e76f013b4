"""The model cache as a file system over the weights bucket (Amazon S3 Files)."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3files as s3files
from constructs import Construct

from modelyard.aws.file_servers import nfs_group
from modelyard.aws.model_cache import CACHE_USER
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.weights_reader import allow_reading
from modelyard.names import EFS_NODE_ACCOUNT


class S3FilesCache(Construct):
    """A file system over the bucket's objects: uploaded objects appear as files, written files are uploaded.

    The EFS CSI driver (version 3 or later) mounts it with its node component's identity; every file belongs
    to the model servers' user, which the access point enforces.

    Args:
        vpc: VPC of the cluster.
        clients: Security group that may mount it: the cluster's.
        bucket: Bucket behind the file system; must be versioned.
        cluster_name: The EKS cluster.
        subnets: One per zone with models; default: the private subnets of `vpc`.
        path: Folder of the file system that the access point exposes.
        removal_policy: What happens to the file system when its stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        clients: ec2.ISecurityGroup,
        bucket: s3.IBucket,
        cluster_name: str,
        subnets: Sequence[ec2.ISubnet] | None = None,
        path: str = "/models",
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        role = self._service_role(bucket)
        self.file_system = s3files.CfnFileSystem(
            self, "FileSystem", bucket=bucket.bucket_arn, role_arn=role.role_arn
        )
        """The file system."""
        self.file_system.apply_removal_policy(removal_policy)
        self.file_system.node.add_dependency(role)
        self.security_group: ec2.SecurityGroup = nfs_group(self, vpc=vpc, clients=clients)
        """Security group of the mount targets."""
        for zone, subnet in enumerate(vpc.private_subnets if subnets is None else subnets):
            s3files.CfnMountTarget(
                self,
                f"MountTarget{zone}",
                file_system_id=self.file_system.attr_file_system_id,
                subnet_id=subnet.subnet_id,
                security_groups=[self.security_group.security_group_id],
            )
        user = str(CACHE_USER)
        self.access_point = s3files.CfnAccessPoint(
            self,
            "Models",
            file_system_id=self.file_system.attr_file_system_id,
            posix_user=s3files.CfnAccessPoint.PosixUserProperty(uid=user, gid=user),
            root_directory=s3files.CfnAccessPoint.RootDirectoryProperty(
                path=path,
                creation_permissions=s3files.CfnAccessPoint.CreationPermissionsProperty(
                    owner_uid=user, owner_gid=user, permissions="0755"
                ),
            ),
        )
        """The access point that servers mount: every file belongs to uid and gid 2000."""
        self._admit_the_driver(bucket, cluster_name)

    def _service_role(self, bucket: s3.IBucket) -> iam.Role:
        """Role of S3 Files for the bucket, and the EventBridge rules that report changes to it (S3 user
        guide, S3 Files)."""
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "ServiceRole",
            description="S3 Files: synchronise the model cache",
            assumed_by=iam.ServicePrincipal(
                "elasticfilesystem.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {
                        "aws:SourceArn": f"arn:{Aws.PARTITION}:s3files:{stack.region}:{stack.account}:file-system/*"
                    },
                },
            ),
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:ListBucket", "s3:ListBucketVersions"], resources=[bucket.bucket_arn]
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "s3:AbortMultipartUpload",
                    "s3:DeleteObject",
                    "s3:DeleteObjectVersion",
                    "s3:GetObject",
                    "s3:GetObjectAttributes",
                    "s3:GetObjectTagging",
                    "s3:GetObjectVersion",
                    "s3:ListMultipartUploadParts",
                    "s3:PutObject",
                    "s3:PutObjectTagging",
                ],
                resources=[bucket.arn_for_objects("*")],
            )
        )
        rules = f"arn:{Aws.PARTITION}:events:{stack.region}:{stack.account}:rule/DO-NOT-DELETE-S3-Files*"
        role.add_to_policy(
            iam.PolicyStatement(
                actions=[
                    "events:DeleteRule",
                    "events:DisableRule",
                    "events:EnableRule",
                    "events:PutRule",
                    "events:PutTargets",
                    "events:RemoveTargets",
                ],
                resources=[rules],
                conditions={"StringEquals": {"events:ManagedBy": "elasticfilesystem.amazonaws.com"}},
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["events:DescribeRule", "events:ListTargetsByRule"],
                resources=[rules],
            )
        )
        return role

    def _admit_the_driver(self, bucket: s3.IBucket, cluster_name: str) -> None:
        """The CSI driver's node component mounts, and reads large files from the bucket directly."""
        file_system = self.file_system.attr_file_system_arn
        role = PodIdentityRole(self, "DriverRole", description="EFS CSI driver: mount the model cache")
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3files:ClientMount", "s3files:ClientWrite", "s3files:ListMountTargets"],
                resources=[file_system],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3files:GetAccessPoint"], resources=[self.access_point.attr_access_point_arn]
            )
        )
        allow_reading(role, [bucket])
        role.associate(cluster_name=cluster_name, namespace="kube-system", service_account=EFS_NODE_ACCOUNT)
