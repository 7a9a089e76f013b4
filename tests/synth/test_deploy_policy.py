"""The policy of CloudFormation's role covers every resource of every stack; bounded roles stay bounded."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest

from modelyard.live.account.deploy_policy import IAM_TYPES, deploy_policy, own_names, service_of
from modelyard.spec import Environment
from tests.synth.conftest import ENVIRONMENTS, Synthesis, environment_file
from tests.synth.test_platforms import PLATFORMS

BOUNDARY = "arn:aws:iam::123456789012:policy/deployers"
PLATFORM_NAMES = sorted(path.stem for path in PLATFORMS.glob("*.yaml"))


def uncovered(synthesis: Synthesis, settings: Environment) -> list[str]:
    """Resources that the policy does not let CloudFormation make, by type or by name."""
    found = []
    allowed = set(deploy_policy(settings)["Statement"][0]["Action"])
    for stack, template in synthesis.templates.items():
        for name, resource in template["Resources"].items():
            kind, properties = resource["Type"], resource.get("Properties", {})
            if kind in IAM_TYPES:
                stated = (
                    properties.get("RoleName")
                    or properties.get("InstanceProfileName")
                    or properties.get("ManagedPolicyName")
                )
                if stated and not any(fnmatch(str(stated), each) for each in own_names(settings)):
                    found.append(f"{stack}/{name} is called {stated}")
            elif not kind.startswith(("Custom::", "AWS::CloudFormation::", "AWS::CDK::")):
                service = service_of(kind)
                if service is None or f"{service}:*" not in allowed:
                    found.append(f"{stack}/{name} is {kind}")
    return found


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_resource_of_the_shipped_environments_is_covered(
    name: str, environment: Callable[[str], Synthesis]
) -> None:
    assert uncovered(environment(name), Environment.model_validate(environment_file(name))) == []


@pytest.mark.parametrize("name", PLATFORM_NAMES)
def test_every_resource_of_every_kind_of_platform_is_covered(
    name: str, synthesise: Callable[[str, dict[str, Any]], Synthesis]
) -> None:
    """With a boundary, which then every role has."""
    data = {**environment_file(name, PLATFORMS), "permissionsBoundary": BOUNDARY}
    synthesis = synthesise(name, data)

    roles = [
        (stack, role)
        for stack in synthesis.templates
        for role in synthesis.properties(stack, "AWS::IAM::Role")
    ]
    assert uncovered(synthesis, Environment.model_validate(data)) == []
    assert roles
    assert {role.get("PermissionsBoundary") for _, role in roles} == {BOUNDARY}


def test_a_type_of_another_service_would_be_noticed(environment: Callable[[str], Synthesis]) -> None:
    settings = Environment.model_validate(environment_file("dev"))
    dev = environment("dev")
    templates = {"Other": {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}}}}

    assert uncovered(Synthesis("x", dev.folder, {}, templates), settings) == [
        "Other/Table is AWS::DynamoDB::Table"
    ]


def test_iam_is_allowed_for_the_environments_own_names_alone() -> None:
    data = {**environment_file("prod"), "permissionsBoundary": BOUNDARY}
    statements = deploy_policy(Environment.model_validate(data))["Statement"]
    about_iam = [each for each in statements if any(action.startswith("iam:") for action in each["Action"])]

    assert all("*" not in action for each in about_iam for action in each["Action"])
    assert all(each["Resource"] != "*" for each in about_iam)
    (grants,) = (each for each in about_iam if "iam:CreateRole" in each["Action"])
    assert grants["Condition"] == {"StringEquals": {"iam:PermissionsBoundary": BOUNDARY}}
