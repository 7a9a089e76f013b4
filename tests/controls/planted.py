"""Typical mistakes, planted in the shipped production app, and the checkers expected to notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import aws_cdk as cdk
from aws_cdk import aws_ce as ce
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs

R = TypeVar("R", bound=cdk.CfnResource)

CDK_NAG, CFN_GUARD, CFN_LINT, CHECKOV, OURS, BUILT_IN = (
    "cdk-nag",
    "cfn-guard",
    "cfn-lint",
    "checkov",
    "template-rules",
    "cfn-validate",
)


@dataclass(frozen=True)
class Mistake:
    """`place`: construct path of the resource that a checker must point at; `others`: further ones that a
    checker names, where the mistake is in two resources together."""

    plant: Callable[[cdk.App], None]
    place: str
    caught_by: frozenset[str]
    others: tuple[str, ...] = ()

    @property
    def places(self) -> set[str]:
        return {self.place, *self.others}


def find(app: cdk.App, path: str, kind: type[R]) -> R:
    construct: Any = app
    for part in path.split("/"):
        construct = construct.node.find_child(part)
    assert isinstance(construct, kind), (path, type(construct))
    return construct


def public_endpoint(app: cdk.App) -> None:
    cluster = find(app, "Cluster/Cluster/Cluster/Resource", eks.CfnCluster)
    cluster.add_property_override("ResourcesVpcConfig.EndpointPublicAccess", True)


def unencrypted_efs(app: cdk.App) -> None:
    file_system = find(app, "ModelCache/Cache/FileSystem/Resource", efs.CfnFileSystem)
    file_system.encrypted = False
    file_system.kms_key_id = None


def wildcard_iam(app: cdk.App) -> None:
    policy = find(app, "Delivery/Flux/SourceRole/DefaultPolicy/Resource", iam.CfnPolicy)
    document = policy.policy_document
    assert isinstance(document, iam.PolicyDocument)
    document.add_statements(iam.PolicyStatement(actions=["s3:*"], resources=["*"]))


def plain_secret(app: cdk.App) -> None:
    secret = find(app, "Secrets/Secrets/Secrets/prod--inference--hf-token", secretsmanager.CfnSecret)
    secret.secret_string = "hf_" + "Aa1" * 12


def missing_flow_log(app: cdk.App) -> None:
    vpc: Any = app.node.find_child("Network").node.find_child("Network").node.find_child("Vpc")
    assert vpc.node.try_remove_child("Flow")


def al2_node_group(app: cdk.App) -> None:
    group = find(app, "Cluster/Cluster/SystemNodes/Nodegroup/Resource", eks.CfnNodegroup)
    group.ami_type = "AL2_ARM_64"


def imdsv1(app: cdk.App) -> None:
    template = find(app, "Cluster/Cluster/SystemNodes/Template/Resource", ec2.CfnLaunchTemplate)
    template.add_property_override("LaunchTemplateData.MetadataOptions.HttpTokens", "optional")


def open_security_group(app: cdk.App) -> None:
    group: Any = app.node.find_child("ModelCache").node.find_child("Cache").node.find_child("MountTargets")
    group.add_ingress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(22), "from anywhere")


def kept_after_a_failed_create(app: cdk.App) -> None:
    queue = find(app, "Karpenter/Karpenter/Interruptions/Resource", sqs.CfnQueue)
    queue.cfn_options.deletion_policy = cdk.CfnDeletionPolicy.RETAIN


def role_for_any_pod(app: cdk.App) -> None:
    role = find(app, "Karpenter/Karpenter/ControllerRole/Resource", iam.CfnRole)
    role.add_property_deletion_override("AssumeRolePolicyDocument.Statement.0.Condition")


def open_s3_endpoint(app: cdk.App) -> None:
    endpoint = find(app, "Network/Network/Vpc/S3/Resource", ec2.CfnVPCEndpoint)
    endpoint.add_property_deletion_override("PolicyDocument")


def called_before_its_log(app: cdk.App) -> None:
    release = find(app, "Delivery/Flux/Release/Resource/Default", cdk.CfnResource)
    groups = [each for each in release.stack.node.find_all() if isinstance(each, logs.CfnLogGroup)]
    others = [each.logical_id for each in groups if "/Installer/Handler/" not in each.node.path]
    release.add_override("DependsOn", others)


def any_repository_deploys(app: cdk.App) -> None:
    role = find(app, "GitHub/Deployer/Resource", iam.CfnRole)
    conditions = "AssumeRolePolicyDocument.Statement.0.Condition"
    role.add_property_deletion_override(f"{conditions}.StringEquals")
    subject = {"token.actions.githubusercontent.com:sub": "repo:example-org/*"}
    role.add_property_override(f"{conditions}.StringLike", subject)


def second_entry_of_a_principal(app: cdk.App) -> None:
    entry = find(app, "Karpenter/Karpenter/NodeAccess", eks.CfnAccessEntry)
    eks.CfnAccessEntry(
        entry.stack, "Again", cluster_name=entry.cluster_name, principal_arn=entry.principal_arn
    )


def notices_that_never_arrive(app: cdk.App) -> None:
    key = find(app, "Cost/Alarms/Key/Resource", kms.CfnKey).node.scope
    assert isinstance(key, kms.Key)
    sender = iam.ServicePrincipal(
        "events.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": "222222222222"}}
    )
    key.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"], principals=[sender], resources=["*"]
        )
    )


def monitor_of_tags(app: cdk.App) -> None:
    stack: Any = app.node.find_child("Cluster")
    ce.CfnAnomalyMonitor(
        stack, "TagMonitor", monitor_name="prod", monitor_type="CUSTOM", monitor_specification="{}"
    )


MISTAKES = {
    "public endpoint": Mistake(
        public_endpoint, "Cluster/Cluster/Cluster/Resource", frozenset({CFN_GUARD, OURS})
    ),
    "unencrypted EFS": Mistake(
        unencrypted_efs,
        "ModelCache/Cache/FileSystem/Resource",
        frozenset({CDK_NAG, CFN_GUARD, CHECKOV, OURS}),
    ),
    "wildcard IAM": Mistake(
        wildcard_iam,
        "Delivery/Flux/SourceRole/DefaultPolicy/Resource",
        frozenset({CDK_NAG, CFN_GUARD, CHECKOV, OURS}),
    ),
    "plain secret": Mistake(
        plain_secret, "Secrets/Secrets/Secrets/prod--inference--hf-token", frozenset({OURS})
    ),
    "missing flow log": Mistake(missing_flow_log, "Network/Network/Vpc/Resource", frozenset({CDK_NAG, OURS})),
    "AL2 node group": Mistake(
        al2_node_group, "Cluster/Cluster/SystemNodes/Nodegroup/Resource", frozenset({OURS})
    ),
    "IMDSv1": Mistake(
        imdsv1, "Cluster/Cluster/SystemNodes/Template/Resource", frozenset({CFN_GUARD, CHECKOV, OURS})
    ),
    "open security group": Mistake(
        open_security_group,
        "ModelCache/Cache/MountTargets/Resource",
        frozenset({CDK_NAG, CFN_GUARD, CHECKOV, BUILT_IN, OURS}),
    ),
    "kept after a failed create": Mistake(
        kept_after_a_failed_create, "Karpenter/Karpenter/Interruptions/Resource", frozenset({OURS})
    ),
    "role for any pod": Mistake(
        role_for_any_pod, "Karpenter/Karpenter/ControllerRole/Resource", frozenset({OURS})
    ),
    "open S3 endpoint": Mistake(open_s3_endpoint, "Network/Network/Vpc/S3/Resource", frozenset({OURS})),
    "any repository deploys": Mistake(any_repository_deploys, "GitHub/Deployer/Resource", frozenset({OURS})),
    "second entry of a principal": Mistake(
        second_entry_of_a_principal,
        "Karpenter/Karpenter/NodeAccess",
        frozenset({BUILT_IN, CFN_LINT, OURS}),
        others=("Karpenter/Again",),
    ),
    "notices that never arrive": Mistake(
        notices_that_never_arrive, "Cost/Alarms/Key/Resource", frozenset({OURS})
    ),
    "monitor of tags": Mistake(monitor_of_tags, "Cluster/TagMonitor", frozenset({OURS})),
    "called before its log": Mistake(
        called_before_its_log, "Delivery/Flux/Installer/Handler/LogGroup/Resource", frozenset({OURS})
    ),
}
