"""CDK's grants with explicit actions; unknown wildcards stay, for the controls to find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from infra.controls.iam_rules import as_list
from modelyard.aws.exact_actions import EXACT, use_exact_actions


def actions(stack: cdk.Stack, kind: str, document: str) -> set[str]:
    template: Mapping[str, Any] = Template.from_stack(stack).to_json()
    return {
        action
        for resource in template["Resources"].values()
        if resource["Type"] == kind
        for statement in resource["Properties"][document]["Statement"]
        for action in as_list(statement["Action"])
    }


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(context={"@aws-cdk/aws-iam:minimizePolicies": True})
    return cdk.Stack(app, "Lab", env=cdk.Environment(account="123456789012", region="us-east-2"))


def test_a_grant_to_read_and_write_names_every_action(stack: cdk.Stack) -> None:
    key = kms.Key(stack, "Key")
    bucket = s3.Bucket(stack, "Bucket", encryption_key=key)
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    use_exact_actions(stack)
    bucket.grant_read_write(role)  # after the call, as constructs of CDK do

    granted = actions(stack, "AWS::IAM::Policy", "PolicyDocument")

    assert {"s3:GetObject", "s3:ListBucket", "s3:PutObject", "s3:AbortMultipartUpload"} <= granted
    assert {"kms:Decrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom"} <= granted
    assert "s3:GetObjectAcl" not in granted
    assert [action for action in granted if "*" in action] == []


def test_policies_of_buckets_and_keys_are_written_out_as_well(stack: cdk.Stack) -> None:
    key = kms.Key(stack, "Key")
    bucket = s3.Bucket(stack, "Bucket", encryption_key=key)
    use_exact_actions(stack)
    bucket.grant_read(iam.AccountPrincipal("210987654321"))

    assert "s3:GetObjectVersion" in actions(stack, "AWS::S3::BucketPolicy", "PolicyDocument")
    assert "s3:GetObject*" not in actions(stack, "AWS::S3::BucketPolicy", "PolicyDocument")
    # The account's own statement is AWS's default: without it nobody could ever change the key again.
    assert {a for a in actions(stack, "AWS::KMS::Key", "KeyPolicy") if "*" in a} == {"kms:*"}


def test_a_wildcard_that_nobody_has_thought_of_stays(stack: cdk.Stack) -> None:
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:Put*"], resources=["arn:aws:s3:::bucket/*"]))
    use_exact_actions(stack)

    assert actions(stack, "AWS::IAM::Policy", "PolicyDocument") == {"s3:Put*"}


def test_what_is_written_out_belongs_to_its_wildcard() -> None:
    for wildcard, exact in EXACT.items():
        assert all(action.startswith(wildcard.rstrip("*")) for action in exact)
