"""The shared model cache: weights are downloaded once and read by every replica in every zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.file_servers import nfs_group

CACHE_USER: Final = 2000
"""uid and gid of the model servers: the access point enforces them, so the pods must run as them."""


class EfsCache(Construct):
    """An encrypted EFS file system with a mount target in each zone and one access point for all models.

    NFS is open only to the cluster's security group, and IAM admits one client, the role of the EFS CSI
    driver on nodes (`driver_role`): a pod that mounts by itself, without credentials or with another role's,
    is refused. Only with TLS and through an access point, which enforces uid and folder, and nobody as root;
    these three hold for administrators of the account too, whom their own permissions would let mount (EFS
    user guide, "Using IAM to control access to file systems": an identity policy is enough).

    The role is named in the policy, because EFS evaluates no condition on principals (same page). A role that
    is deleted and made again is another one: deploy this stack after the cluster's.

    Args:
        vpc: VPC of the cluster.
        clients: Security group that may mount it: the cluster's.
        subnets: One per zone with models; default: the private subnets of `vpc`.
        driver_role: ARN of the role that may mount, `InferenceCluster.efs_driver`; default: everybody whom
            the network lets through, since the driver has no role then.
        path: Folder of the file system that the access point exposes.
        backups: Whether AWS Backup runs every night; weights alone can be downloaded again.
        removal_policy: What happens to file system and key when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        clients: ec2.ISecurityGroup,
        subnets: Sequence[ec2.ISubnet] | None = None,
        driver_role: str | None = None,
        path: str = "/models",
        backups: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.key = EncryptionKey(self, "Key", description="Model cache", removal_policy=removal_policy)
        """Encrypts the file system."""
        self.security_group: ec2.SecurityGroup = nfs_group(self, vpc=vpc, clients=clients)
        """Security group of the mount targets."""
        self.file_system = efs.FileSystem(
            self,
            "FileSystem",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(
                subnets=list(vpc.private_subnets if subnets is None else subnets)
            ),
            security_group=self.security_group,
            encrypted=True,
            kms_key=self.key,
            # Starting nodes read weights in bursts; bursting credits would be used up by the second burst.
            throughput_mode=efs.ThroughputMode.ELASTIC,
            performance_mode=efs.PerformanceMode.GENERAL_PURPOSE,
            # A revision not read for two months moves to a tenth of the price, and moves back on use.
            lifecycle_policy=efs.LifecyclePolicy.AFTER_60_DAYS,
            out_of_infrequent_access_policy=efs.OutOfInfrequentAccessPolicy.AFTER_1_ACCESS,
            enable_automatic_backups=backups,
            # The policy below is complete; otherwise the construct would add its own.
            allow_anonymous_access=True,
            file_system_policy=_policy(Stack.of(self), driver_role),
            removal_policy=removal_policy,
        )
        """The file system."""
        self.access_point: efs.AccessPoint = self.file_system.add_access_point(
            "Models",
            path=path,
            create_acl=efs.Acl(owner_uid=str(CACHE_USER), owner_gid=str(CACHE_USER), permissions="0755"),
            posix_user=efs.PosixUser(uid=str(CACHE_USER), gid=str(CACHE_USER)),
        )
        """The access point that servers mount: every file belongs to uid and gid 2000."""


def _policy(stack: Stack, driver_role: str | None) -> iam.PolicyDocument:
    # Not the one access point by its id: that would refer to the file system, which has this policy.
    any_access_point = stack.format_arn(
        service="elasticfilesystem", resource="access-point", resource_name="*"
    )
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                sid="MountFromTheVpc",
                principals=[iam.ArnPrincipal(driver_role) if driver_role else iam.AnyPrincipal()],
                actions=["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"],
                resources=["*"],
                conditions={
                    "Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"},
                    "StringLike": {"elasticfilesystem:AccessPointArn": any_access_point},
                },
            ),
            _refused("OnlyWithTls", "Client*", {"Bool": {"aws:SecureTransport": "false"}}),
            _refused(
                "OnlyThroughAnAccessPoint",
                "Client*",
                {"StringNotLike": {"elasticfilesystem:AccessPointArn": any_access_point}},
            ),
            _refused("NobodyAsRoot", "ClientRootAccess", {}),
        ]
    )


def _refused(sid: str, action: str, conditions: Mapping[str, object]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=[f"elasticfilesystem:{action}"],
        resources=["*"],
        conditions=dict(conditions),
    )
