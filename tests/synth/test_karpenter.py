"""Karpenter's IAM roles and events."""

from __future__ import annotations

import json
import re
from typing import Any

import aws_cdk as cdk
import pytest

from modelyard.aws.karpenter import KarpenterController
from tests.synth.conftest import Synthesis
from tests.synth.karpenter_reference import REFERENCE, Statement


def _statements(synthesis: Synthesis) -> dict[str, dict[str, Any]]:
    return {
        statement["Sid"]: statement
        for policy in synthesis.properties("Karpenter", "AWS::IAM::ManagedPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
    }


def test_the_controller_has_six_policies_and_all_are_attached(each: Synthesis) -> None:
    policies = each.properties("Karpenter", "AWS::IAM::ManagedPolicy")

    assert len(policies) == 6
    assert all(len(policy["Roles"]) == 1 for policy in policies)


def _plain(value: Any, synthesis: Synthesis) -> Any:
    """A resource or a condition's value without partition, region, account and the cluster's name."""
    if isinstance(value, list):
        return [_plain(each, synthesis) for each in value]
    if isinstance(value, dict):
        if "Fn::GetAtt" in value:
            kind = synthesis.templates["Karpenter"]["Resources"][value["Fn::GetAtt"][0]]["Type"]
            return {"AWS::IAM::Role": "the node role", "AWS::SQS::Queue": "the queue"}[kind]
        value = "".join(part if isinstance(part, str) else "aws" for part in value["Fn::Join"][1])
    if value == "us-east-2":
        return "R"
    text = re.sub(r"^arn:aws:[a-z0-9-]+:(us-east-2)?:(\d{12}|\*)?:", "", value)
    return text.replace(f"modelyard-{synthesis.name}", "C")


def _as_statement(statement: dict[str, Any], synthesis: Synthesis) -> Statement:
    def listed(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    return Statement(
        set(listed(statement["Action"])),
        {_plain(each, synthesis) for each in listed(statement["Resource"])},
        {
            (operator, _plain(key, synthesis)): _plain(wanted, synthesis)
            for operator, pairs in statement.get("Condition", {}).items()
            for key, wanted in pairs.items()
        },
    )


def test_the_controllers_policy_is_the_reference_template_action_by_action(each: Synthesis) -> None:
    ours = {sid: _as_statement(statement, each) for sid, statement in _statements(each).items()}

    assert ours == REFERENCE


@pytest.mark.parametrize(
    ("sid", "change"),
    [
        ("AllowScopedDeletion", {"Action": ["ec2:TerminateInstances", "ec2:StopInstances"]}),
        ("AllowScopedDeletion", {"Condition": {}}),
        ("AllowPricingReadActions", {"Action": "pricing:*"}),
        ("AllowSSMReadActions", {"Resource": "*"}),
        ("AllowRegionalReadActions", {"Condition": {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}}),
    ],
)
def test_a_planted_difference_is_seen(sid: str, change: dict[str, Any], prod: Synthesis) -> None:
    planted = _statements(prod)[sid] | change

    assert _as_statement(planted, prod) != REFERENCE[sid]


@pytest.mark.parametrize(
    "sid",
    [
        "AllowScopedEC2LaunchTemplateAccessActions",
        "AllowScopedEC2InstanceActionsWithTags",
        "AllowScopedResourceCreationTagging",
        "AllowScopedResourceTagging",
        "AllowScopedDeletion",
        "AllowScopedInstanceProfileCreationActions",
        "AllowScopedInstanceProfileTagActions",
        "AllowScopedInstanceProfileActions",
    ],
)
def test_writes_are_bound_to_this_cluster_by_a_literal_condition_key(sid: str, prod: Synthesis) -> None:
    condition = _statements(prod)[sid]["Condition"]["StringEquals"]

    keys = [key for key in condition if key.endswith("/kubernetes.io/cluster/modelyard-prod")]
    assert keys
    assert all(condition[key] == "owned" for key in keys)


def test_a_cluster_name_that_is_not_known_at_synth_is_refused() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    unknown = cdk.Fn.ref("AWS::StackName")

    with pytest.raises(ValueError, match="must be a literal"):
        KarpenterController(stack, "Karpenter", cluster_name=unknown)


def test_five_kinds_of_events_reach_the_queue(each: Synthesis) -> None:
    rules = each.properties("Karpenter", "AWS::Events::Rule")

    assert {rule["EventPattern"]["detail-type"][0] for rule in rules} == {
        "AWS Health Event",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
        "EC2 Capacity Reservation Instance Interruption Warning",
    }
    queue = {"Fn::GetAtt": [_queue_id(each), "Arn"]}
    assert all([target["Arn"] for target in rule["Targets"]] == [queue] for rule in rules)


def _queue_id(synthesis: Synthesis) -> str:
    resources = synthesis.templates["Karpenter"]["Resources"]
    (name,) = [str(n) for n, r in resources.items() if r["Type"] == "AWS::SQS::Queue"]
    return name


def test_the_queue_takes_messages_from_these_rules_only_and_over_tls_only(each: Synthesis) -> None:
    queue = each.only("Karpenter", "AWS::SQS::Queue")
    assert queue["QueueName"] == f"modelyard-{each.name}"
    assert (queue["MessageRetentionPeriod"], queue["SqsManagedSseEnabled"]) == (300, True)

    statements = each.only("Karpenter", "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    (deny,) = [s for s in statements if s["Effect"] == "Deny"]
    assert (deny["Action"], deny["Condition"]) == ("sqs:*", {"Bool": {"aws:SecureTransport": "false"}})
    allows = [s for s in statements if s["Effect"] == "Allow"]
    assert len(allows) == 5
    assert all("aws:SourceArn" in s["Condition"]["ArnEquals"] for s in allows)


def test_nodes_have_the_names_that_the_manifests_mention(each: Synthesis) -> None:
    (profile,) = each.properties("Karpenter", "AWS::IAM::InstanceProfile")
    assert profile["InstanceProfileName"] == f"modelyard-{each.name}-node"

    names = {role.get("RoleName") for role in each.properties("Karpenter", "AWS::IAM::Role")}
    assert f"modelyard-{each.name}-node" in names


def test_nodes_may_join_the_cluster(each: Synthesis) -> None:
    entry = each.only("Karpenter", "AWS::EKS::AccessEntry")

    assert (entry["Type"], entry["ClusterName"]) == ("EC2_LINUX", f"modelyard-{each.name}")
    assert "AccessPolicies" not in entry


def test_nodes_pull_images_and_change_nothing(each: Synthesis) -> None:
    (node,) = [r for r in each.properties("Karpenter", "AWS::IAM::Role") if "RoleName" in r]

    policies = json.dumps(node["ManagedPolicyArns"])
    assert "AmazonEC2ContainerRegistryPullOnly" in policies
    assert "Policies" not in node


def test_the_controller_gets_its_role_by_pod_identity(each: Synthesis) -> None:
    association = each.only("Karpenter", "AWS::EKS::PodIdentityAssociation")

    assert (association["Namespace"], association["ServiceAccount"]) == ("kube-system", "karpenter")
