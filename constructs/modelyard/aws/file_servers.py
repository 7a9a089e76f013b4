"""Security groups of file systems: open to the cluster, only on the file system's ports."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

NFS: Final = ec2.Port.tcp(2049)


def nfs_group(scope: Construct, *, vpc: ec2.IVpc, clients: ec2.ISecurityGroup) -> ec2.SecurityGroup:
    """The group of a cache's mount targets."""
    group = ec2.SecurityGroup(
        scope,
        "MountTargets",
        vpc=vpc,
        description="NFS of the model cache",
        allow_all_outbound=False,
    )
    group.add_ingress_rule(by_id(clients), NFS, "NFS from the cluster")
    return group


def by_id(group: ec2.ISecurityGroup) -> ec2.IPeer:
    """`group` as the peer of a security group rule.

    Given a group, CDK names the rule after the group's path, which differs in a pipeline. CloudFormation
    would then create the new rule before deleting the old one, and EC2 rejects the duplicate.
    """
    return ec2.Peer.security_group_id(group.security_group_id)
