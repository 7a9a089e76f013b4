"""The model cache on FSx for Lustre: highest throughput, in a single zone."""

from __future__ import annotations

from typing import Final, Literal

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.file_servers import by_id
from modelyard.spec.storage import lustre_capacity_gib

_PORTS: Final = (ec2.Port.tcp(988), ec2.Port.tcp_range(1018, 1023))
"""Lustre's own ports (FSx user guide, file system access control)."""


class LustreCache(Construct):
    """A persistent SSD file system, encrypted, open to the cluster's nodes and its own file servers.

    Args:
        vpc: VPC of the cluster.
        clients: Security group that may mount it: the cluster's.
        subnet: Sets the zone of the file system; default: the first private subnet of `vpc`.
        size_gib: Capacity in GiB, rounded up to 1200 or the next multiple of 2400.
        mb_per_second_per_tib: Throughput per TiB in MB/s.
        removal_policy: What happens to file system and key when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        clients: ec2.ISecurityGroup,
        subnet: ec2.ISubnet | None = None,
        size_gib: int = 1200,
        mb_per_second_per_tib: Literal[125, 250, 500, 1000] = 250,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.security_group = ec2.SecurityGroup(
            self, "Servers", vpc=vpc, description="Lustre of the model cache", allow_all_outbound=False
        )
        """Security group of the file servers."""
        for port in _PORTS:
            self.security_group.add_ingress_rule(by_id(clients), port, "Lustre from the cluster")
            # Servers call clients and each other; the construct already allows the latter.
            self.security_group.add_egress_rule(by_id(clients), port, "Lustre to the cluster")
            self.security_group.add_egress_rule(self.security_group, port, "Lustre among its servers")
        self.key = EncryptionKey(self, "Key", description="Model cache", removal_policy=removal_policy)
        """Encrypts the file system."""
        self.file_system = fsx.LustreFileSystem(
            self,
            "FileSystem",
            vpc=vpc,
            vpc_subnet=subnet or vpc.private_subnets[0],
            security_group=self.security_group,
            storage_capacity_gib=lustre_capacity_gib(size_gib),
            kms_key=self.key,
            file_system_type_version=fsx.FileSystemTypeVersion.V_2_15,
            lustre_configuration=fsx.LustreConfiguration(
                deployment_type=fsx.LustreDeploymentType.PERSISTENT_2,
                per_unit_storage_throughput=mb_per_second_per_tib,
                # Checkpoints hardly compress, and the attempt costs time.
                data_compression_type=fsx.LustreDataCompressionType.NONE,
            ),
            removal_policy=removal_policy,
        )
        """The file system; a PersistentVolume needs its `dns_name` and `mount_name`."""
        # FSx refuses a file system whose group does not yet allow its ports (aws-parallelcluster 1198, 6181).
        self.file_system.node.add_dependency(self.security_group)
