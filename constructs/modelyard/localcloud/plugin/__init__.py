"""CloudFormation types that MiniStack 1.5.33 lacks for this project's stacks.

MiniStack rejects a template with a type that has no handler. This stays strict: a type is in MiniStack's
table, in ours, or it fails the stack. Ours:

    AWS::EC2::EIP, NatGateway, FlowLog           the APIs exist, the CloudFormation types do not
    AWS::EC2::SecurityGroupIngress and Egress    the same; CDK writes them for every connection of two groups
    AWS::EKS::Addon, AccessEntry, PodIdentityAssociation    the same
    Custom::CDKBucketDeployment                  its Lambda needs the aws executable at /opt/awscli, so the
                                                 plugin does the work: unzip, replace markers, upload, prune
    AWS::Budgets::Budget, AWS::S3Files::*        the APIs exist
    Custom::AWSCDK-EKS-HelmChart, AWS::EKS::Capability    recorded; there is no Kubernetes API
    AWS::APS::Workspace, Grafana, CE, FSx        recorded; there is no such service
    AWS::ECR::PullThroughCacheRule, RepositoryCreationTemplate    recorded; nobody pulls here
    AWS::EC2::VPCCidrBlock                       recorded; an emulated VPC has only one CIDR

Extended, because MiniStack stores less than the template says:

    AWS::EC2::VPC         the attributes CidrBlock and CidrBlockAssociations
    AWS::EKS::Cluster     a real cluster security group, the VPC's id, encryption, service CIDR, deletion
                          protection; subnet checks; no replacement under its name
    AWS::EKS::Nodegroup   capacity type; subnet and role checks; a version changes alone
    AWS::SecretsManager::Secret, Logs::LogGroup, S3::Bucket, IAM::Role    a name that is taken is refused

All of them use MiniStack's public API with botocore, like any client: botocore checks the parameters against
AWS's models, the service checks the references, and boto3 lists the result. Only `internals` and `journaling`
use private names of MiniStack.
"""

from __future__ import annotations

from pathlib import Path

from modelyard.localcloud.journal import Journal
from modelyard.localcloud.plugin import (
    bucket_deployment,
    budgets,
    ec2,
    eks,
    eks_cluster,
    helm_chart,
    internals,
    recorded,
    s3_files,
    taken_names,
)
from modelyard.localcloud.plugin.resource_type import Aws


def install(*, endpoint_url: str, journal_file: Path) -> None:
    """Install the types and the journal. Call once, after MiniStack's settings are in the environment."""
    internals.require_pinned_version()
    aws = Aws(endpoint_url, scope=internals.request_scope)
    internals.attach(
        [
            *ec2.TYPES,
            *eks_cluster.TYPES,
            *eks.TYPES,
            *bucket_deployment.TYPES,
            *helm_chart.TYPES,
            *budgets.TYPES,
            *s3_files.TYPES,
            *recorded.TYPES,
            *taken_names.TYPES,
        ],
        aws,
        Journal(journal_file),
    )
