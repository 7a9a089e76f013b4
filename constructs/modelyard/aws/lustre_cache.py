"""The model cache on FSx for Lustre: the most throughput, in one zone."""

from __future__ import annotations

from typing import Final

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
    """A persistent SSD file system, encrypted, open to the cluster's nodes and to its own servers."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,  # its zone is the file system's
        clients: ec2.ISecurityGroup,  # the cluster's security group
        size_gib: int,  # at least this much: 1200, or the next multiple of 2400
        mb_per_second_per_tib: int = 250,  # 125, 250, 500 or 1000
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        super().__init__(scope, construct_id)
        group = ec2.SecurityGroup(
            self, "Servers", vpc=vpc, description="Lustre of the model cache", allow_all_outbound=False
        )
        for port in _PORTS:
            group.add_ingress_rule(by_id(clients), port, "Lustre from the cluster")
            # Servers call clients back, and each other; the construct lets the latter in.
            group.add_egress_rule(by_id(clients), port, "Lustre to the cluster")
            group.add_egress_rule(group, port, "Lustre among its servers")
        self.file_system = fsx.LustreFileSystem(
            self,
            "FileSystem",
            vpc=vpc,
            vpc_subnet=subnet,
            security_group=group,
            storage_capacity_gib=lustre_capacity_gib(size_gib),
            kms_key=EncryptionKey(self, "Key", description="Model cache", removal_policy=removal_policy),
            file_system_type_version=fsx.FileSystemTypeVersion.V_2_15,
            lustre_configuration=fsx.LustreConfiguration(
                deployment_type=fsx.LustreDeploymentType.PERSISTENT_2,
                per_unit_storage_throughput=mb_per_second_per_tib,
                # Checkpoints hardly compress, and the attempt costs time.
                data_compression_type=fsx.LustreDataCompressionType.NONE,
            ),
            removal_policy=removal_policy,
        )
