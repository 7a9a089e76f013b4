"""Each of our own rules on templates of the shipped app: no finding as shipped, a finding after a change."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from infra.controls.iam_rules import UNSCOPED, as_list, statements
from infra.controls.template_rules import RULES, broken_rules
from tests.controls.conftest import Surveys

pytestmark = pytest.mark.story

Template = dict[str, Any]


@pytest.fixture(scope="session")
def templates(surveys: Surveys) -> dict[str, Template]:
    """Production's, by stack."""
    return {each.stack: each.template for each in surveys.production.templates}


def one(template: Template, kind: str) -> dict[str, Any]:
    """Properties of the first resource of type `kind`."""
    properties: dict[str, Any] = next(
        r["Properties"] for r in template["Resources"].values() if r["Type"] == kind
    )
    return properties


def statement(template: Template) -> dict[str, Any]:
    found: dict[str, Any] = one(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"][0]
    return found


def cluster(template: Template) -> dict[str, Any]:
    return one(template, "AWS::EKS::Cluster")


def metadata_options(template: Template) -> dict[str, Any]:
    options: dict[str, Any] = one(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"][
        "MetadataOptions"
    ]
    return options


CHANGES: list[tuple[str, str, Callable[[Template], Any]]] = [
    ("eks-endpoint-open", "Cluster", lambda t: cluster(t)["ResourcesVpcConfig"].pop("EndpointPublicAccess")),
    (
        "eks-endpoint-open",
        "Cluster",
        lambda t: cluster(t)["ResourcesVpcConfig"].update(
            EndpointPublicAccess=True, PublicAccessCidrs=["10.0.0.0/8", "0.0.0.0/0"]
        ),
    ),
    (
        "eks-control-plane-logs",
        "Cluster",
        lambda t: cluster(t)["Logging"]["ClusterLogging"]["EnabledTypes"].pop(),
    ),
    ("eks-control-plane-logs", "Cluster", lambda t: cluster(t).pop("Logging")),
    ("eks-secrets-encryption", "Cluster", lambda t: cluster(t).pop("EncryptionConfig")),
    ("eks-node-image", "Cluster", lambda t: one(t, "AWS::EKS::Nodegroup").pop("AmiType")),
    ("launch-template-imds", "Cluster", lambda t: metadata_options(t).pop("HttpTokens")),
    ("launch-template-imds", "Cluster", lambda t: metadata_options(t).update(HttpPutResponseHopLimit=2)),
    ("vpc-flow-log", "Network", lambda t: one(t, "AWS::EC2::FlowLog").update(TrafficType="REJECT")),
    (
        "security-group-open",
        "Network",
        lambda t: one(t, "AWS::EC2::SecurityGroup")["SecurityGroupIngress"].append(
            {"CidrIpv6": "::/0", "IpProtocol": "-1"}
        ),
    ),
    (
        "security-group-open",
        "ModelCache",
        lambda t: t["Resources"].update(
            Ssh={"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"CidrIp": "0.0.0.0/0"}}
        ),
    ),
    ("efs-encryption", "ModelCache", lambda t: one(t, "AWS::EFS::FileSystem").pop("Encrypted")),
    ("plain-secret", "Delivery", lambda t: t.update(Outputs={"Key": {"Value": "AKIA" + "ABCD" * 4}})),
    ("iam-wildcard-action", "Delivery", lambda t: statement(t).update(Action="s3:Get*")),
    ("iam-wildcard-action", "Delivery", lambda t: statement(t).update(NotAction="s3:GetObject")),
    ("iam-wildcard-resource", "Delivery", lambda t: statement(t).update(Resource="*")),
    ("iam-wildcard-resource", "Delivery", lambda t: statement(t).update(NotResource="arn")),
    (
        "iam-wildcard-action",
        "Delivery",
        lambda t: one(t, "AWS::IAM::Role").update(
            Policies=[{"PolicyDocument": {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "a"}}}]
        ),
    ),
    (
        "iam-broad-managed-policy",
        "Cluster",
        lambda t: one(t, "AWS::IAM::Role")["ManagedPolicyArns"].append(
            "arn:aws:iam::aws:policy/AdministratorAccess"
        ),
    ),
    (
        "iam-role-without-boundary",
        "Cluster",
        lambda t: one(t, "AWS::IAM::Role").update(PermissionsBoundary="arn:aws:iam::aws:policy/Bound"),
    ),
    (
        "workflow-trust-broad",
        "GitHub",
        lambda t: next(
            r["Properties"]
            for r in t["Resources"].values()
            if r["Type"] == "AWS::IAM::Role" and "WebIdentity" in json.dumps(r["Properties"])
        )["AssumeRolePolicyDocument"]["Statement"][0].update(
            Condition={"StringLike": {"token.actions.githubusercontent.com:sub": "repo:example-org/*"}}
        ),
    ),
    (
        "access-entry-twice",
        "Cluster",
        lambda t: t["Resources"].update(
            Again={"Type": "AWS::EKS::AccessEntry", "Properties": one(t, "AWS::EKS::AccessEntry")}
        ),
    ),
    (
        "eventbridge-conditioned",
        "Cluster",
        lambda t: one(t, "AWS::KMS::Key")["KeyPolicy"]["Statement"].append(
            {
                "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
                "Condition": {"StringEquals": {"aws:SourceAccount": "222222222222"}},
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Resource": "*",
            }
        ),
    ),
    (
        "anomaly-monitor-of-tags",
        "Cluster",
        lambda t: t["Resources"].update(
            Monitor={"Type": "AWS::CE::AnomalyMonitor", "Properties": {"MonitorType": "CUSTOM"}}
        ),
    ),
    ("nodegroup-unpatched", "Cluster", lambda t: one(t, "AWS::EKS::Nodegroup").pop("ReleaseVersion")),
    (
        "retained-from-failed-create",
        "Secrets",
        lambda t: next(
            r for r in t["Resources"].values() if r["Type"] == "AWS::SecretsManager::Secret"
        ).update(DeletionPolicy="Retain"),
    ),
    (
        "log-group-race",
        "Delivery",
        lambda t: next(r for r in t["Resources"].values() if r["Type"] == "Custom::AWSCDK-EKS-HelmChart").pop(
            "DependsOn"
        ),
    ),
    (
        "lustre-before-its-rules",
        "ModelCache",
        lambda t: t["Resources"].update(
            Lustre={"Type": "AWS::FSx::FileSystem", "Properties": {"SecurityGroupIds": [{"Ref": "Group"}]}},
            Rule={"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"GroupId": {"Ref": "Group"}}},
        ),
    ),
    (
        "cache-without-credentials",
        "Network",
        lambda t: t["Resources"].update(
            Hub={"Type": "AWS::ECR::PullThroughCacheRule", "Properties": {"UpstreamRegistry": "docker-hub"}}
        ),
    ),
    (
        "cache-without-credentials",
        "Network",
        lambda t: t["Resources"].update(
            Nvidia={
                "Type": "AWS::ECR::PullThroughCacheRule",
                "Properties": {"UpstreamRegistryUrl": "nvcr.io"},
            }
        ),
    ),
    (
        "pod-identity-any-pod",
        "Karpenter",
        lambda t: next(
            r
            for r in t["Resources"].values()
            if r["Type"] == "AWS::IAM::Role" and "pods.eks" in json.dumps(r["Properties"])
        )["Properties"]["AssumeRolePolicyDocument"]["Statement"][0].pop("Condition"),
    ),
    (
        "efs-whole-file-system",
        "ModelCache",
        lambda t: one(t, "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"][0]["Condition"].pop(
            "StringLike"
        ),
    ),
    (
        "efs-anonymous-mounts",
        "ModelCache",
        lambda t: one(t, "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"][0].update(
            Principal={"AWS": "*"}
        ),
    ),
    (
        "efs-anonymous-mounts",
        "ModelCache",
        lambda t: one(t, "AWS::EFS::FileSystem").pop("FileSystemPolicy"),
    ),
    (
        "gateway-endpoint-open",
        "Network",
        lambda t: next(
            r["Properties"]
            for r in t["Resources"].values()
            if r["Type"] == "AWS::EC2::VPCEndpoint" and r["Properties"].get("VpcEndpointType") == "Gateway"
        ).pop("PolicyDocument"),
    ),
    (
        "resource-policy-open",
        "ModelCache",
        lambda t: one(t, "AWS::EFS::FileSystem")["FileSystemPolicy"]["Statement"].append(
            {
                "Effect": "Allow",
                "Principal": {"AWS": "*"},
                "Action": "elasticfilesystem:ClientMount",
                "Resource": "*",
            }
        ),
    ),
]


def test_the_templates_as_shipped_break_no_rule(surveys: Surveys) -> None:
    broken = [
        (name, found)
        for name, each in surveys.shipped.items()
        for template in each.templates
        for found in broken_rules(template.template)
    ]

    assert broken == []


@pytest.mark.parametrize(("rule", "stack", "change"), CHANGES)
def test_a_change_for_the_worse_breaks_its_rule(
    rule: str, stack: str, change: Callable[[Template], Any], templates: dict[str, Template]
) -> None:
    changed = deepcopy(templates[stack])
    change(changed)

    assert rule in {broken for broken, _, _ in broken_rules(changed)}


def test_every_rule_is_tried() -> None:
    assert {rule for rule, _, _ in CHANGES} == set(RULES)


def test_a_public_endpoint_for_named_networks_is_fine(templates: dict[str, Template]) -> None:
    changed = deepcopy(templates["Cluster"])
    cluster(changed)["ResourcesVpcConfig"].update(
        EndpointPublicAccess=True, PublicAccessCidrs=["198.51.100.0/24"]
    )

    assert list(broken_rules(changed)) == []


def _wildcard_resources(surveys: Surveys) -> set[str]:
    """Every action that some identity of some app may use on every resource."""
    return {
        action
        for each in surveys.shipped.values()
        for template in each.templates
        for _, allowed in statements(template.template)
        if "*" in as_list(allowed["Resource"])
        for action in as_list(allowed["Action"])
    }


def test_wildcard_resources_are_those_of_the_list_and_the_list_has_no_more(surveys: Surveys) -> None:
    assert _wildcard_resources(surveys) == set(UNSCOPED)
    assert all(source.startswith("https://docs.aws.amazon.com/") for source in UNSCOPED.values())


def test_no_identity_anywhere_has_an_action_by_wildcard(surveys: Surveys) -> None:
    actions = [
        action
        for each in surveys.shipped.values()
        for template in each.templates
        for _, allowed in statements(template.template)
        for action in as_list(allowed["Action"])
    ]

    assert len(actions) > 100
    assert [action for action in actions if "*" in action] == []


def test_the_upload_may_do_what_an_upload_does(templates: dict[str, Template]) -> None:
    """CDK's own helper grants families of actions; what is left of them is named."""
    (policy,) = (
        resource["Properties"]["PolicyDocument"]["Statement"]
        for name, resource in templates["Delivery"]["Resources"].items()
        if resource["Type"] == "AWS::IAM::Policy" and name.startswith("CustomCDKBucketDeployment")
    )
    actions = {action for allowed in policy for action in as_list(allowed["Action"])}

    assert {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"} <= actions
    assert "*" not in json.dumps(sorted(actions))
