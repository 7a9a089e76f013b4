"""Rules for each stack of each environment; every check is proved by a planted mistake."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from cfnlint.api import lint  # type: ignore[import-untyped]
from cfnlint.config import ManualArgs  # type: ignore[import-untyped]

from tests.synth.conftest import Synthesis, stacks_of

CUSTOM_TYPES = {"Custom::CDKBucketDeployment", "Custom::AWSCDK-EKS-HelmChart"}

Template = dict[str, Any]


def _walk(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner)


def ties(template: Template) -> list[str]:
    """Ways in which a stack holds on to another: exports, imports, outputs read across stacks."""
    found = [key for key, _ in _walk(template) if key in ("Fn::ImportValue", "Fn::GetStackOutput")]
    return found + [name for name, output in template.get("Outputs", {}).items() if "Export" in output]


def secret_values(template: Template) -> list[str]:
    """Properties that would put a secret value into the template, or have CloudFormation resolve one."""
    named = [key for key, _ in _walk(template) if key in ("SecretString", "GenerateSecretString")]
    text = json.dumps(template)
    return named + [
        mark for mark in ("{{resolve:secretsmanager", "{{resolve:ssm-secure", "hf_") if mark in text
    ]


def custom_types(template: Template) -> set[str]:
    return {
        resource["Type"]
        for resource in template["Resources"].values()
        if resource["Type"].startswith("Custom::")
        or resource["Type"] == "AWS::CloudFormation::CustomResource"
    }


def retained(template: Template) -> list[str]:
    return [
        n
        for n, r in template["Resources"].items()
        if any(r.get(policy, "").startswith("Retain") for policy in ("DeletionPolicy", "UpdateReplacePolicy"))
    ]


def test_no_stack_holds_on_to_another(each: Synthesis) -> None:
    assert {name: ties(t) for name, t in each.templates.items() if ties(t)} == {}


def test_no_template_holds_a_secret_value(each: Synthesis) -> None:
    assert {name: secret_values(t) for name, t in each.templates.items() if secret_values(t)} == {}


def test_two_custom_resources_are_all_there_is(each: Synthesis) -> None:
    used = set().union(*(custom_types(t) for t in each.templates.values()))

    assert used == CUSTOM_TYPES


def test_nothing_is_looked_up_and_nothing_is_made_up(each: Synthesis) -> None:
    assert not each.manifest.get("missing")
    assert "dummy" not in json.dumps(each.templates).lower()


def test_templates_stay_far_below_the_limits_of_cloudformation(each: Synthesis) -> None:
    for template in each.templates.values():
        assert len(json.dumps(template).encode()) < 1_000_000
        assert len(template["Resources"]) < 500


def test_account_and_region_are_stated(each: Synthesis) -> None:
    stacks = [a for a in each.manifest["artifacts"].values() if a["type"] == "aws:cloudformation:stack"]

    assert len(stacks) == len(stacks_of(each.name))
    for stack in stacks:
        assert stack["environment"].endswith("/us-east-2")
        assert stack["environment"].removeprefix("aws://")[:12].isdigit()
        assert stack["properties"]["stackName"].startswith(f"modelyard-{each.name}-")


def _protected(synthesis: Synthesis) -> set[bool]:
    return {
        artifact["properties"].get("terminationProtection", False)
        for artifact in synthesis.manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    }


def test_only_stacks_with_data_to_keep_are_protected(prod: Synthesis, dev: Synthesis) -> None:
    assert _protected(prod) == {True}
    assert _protected(dev) == {False}


@pytest.mark.parametrize("name", ["local", "dev", "staging"])
def test_a_disposable_environment_leaves_nothing(name: str, environment: Callable[[str], Synthesis]) -> None:
    templates = environment(name).templates

    assert {stack: retained(t) for stack, t in templates.items() if retained(t)} == {}


def test_production_keeps_its_data(prod: Synthesis) -> None:
    kinds = {
        template["Resources"][name]["Type"]
        for template in prod.templates.values()
        for name in retained(template)
    }

    assert kinds == {
        "AWS::EFS::FileSystem",
        "AWS::KMS::Key",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
    }


def test_a_failed_first_create_keeps_nothing(each: Synthesis) -> None:
    """`Retain` keeps what is rolled back too, and its fixed name makes the second attempt fail."""
    kept = {
        f"{stack}/{name}"
        for stack, template in each.templates.items()
        for name, resource in template["Resources"].items()
        if resource.get("DeletionPolicy") == "Retain"
    }

    assert kept == set()


def test_every_taggable_resource_names_its_environment(each: Synthesis) -> None:
    for kind, stack in {
        "AWS::EKS::Cluster": "Cluster",
        "AWS::SQS::Queue": "Karpenter",
        "AWS::S3::Bucket": "Delivery",
        "AWS::EC2::VPC": "Network",
    }.items():
        found = [properties["Tags"] for properties in each.properties(stack, kind)]
        assert found
        for tags in found:
            pairs = tags.items() if isinstance(tags, dict) else [(tag["Key"], tag["Value"]) for tag in tags]
            assert ("modelyard:environment", each.name) in pairs


def template_errors(template: Template) -> list[str]:
    return [
        f"{match.rule.id} {match.message}"
        for match in lint(json.dumps(template), config=ManualArgs(regions=["us-east-2"]))
        if match.rule.id[0] == "E"
    ]


def test_the_checks_see_planted_mistakes(prod: Synthesis) -> None:
    template = deepcopy(prod.templates["Secrets"])
    name, *_ = (n for n, r in template["Resources"].items() if r["Type"] == "AWS::SecretsManager::Secret")
    secret = template["Resources"][name]

    secret["Properties"]["KmsKeyId"] = {"Fn::ImportValue": "Shared:Key"}
    secret["Properties"]["GenerateSecretString"] = {}
    secret["Properties"]["Nmae"] = "typo"
    template["Resources"]["Lookup"] = {"Type": "Custom::Lookup", "Properties": {"ServiceToken": "arn"}}
    template["Outputs"] = {"Secret": {"Value": "x", "Export": {"Name": "Secret"}}}

    assert ties(template) == ["Fn::ImportValue", "Secret"]
    assert secret_values(template) == ["GenerateSecretString"]
    assert custom_types(template) == {"Custom::Lookup"}
    assert name in retained(template)
    assert any("Nmae" in error for error in template_errors(template))
