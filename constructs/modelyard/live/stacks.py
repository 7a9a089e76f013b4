"""The stacks of an environment in CloudFormation, in deletion order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelyard.live.api.aws import Ask, Operation
from modelyard.names import ENVIRONMENT_TAG, MODEL_CACHE, stack_name

DESCRIBE_STACKS = Operation("cloudformation", "DescribeStacks")
_TEMPLATE = Operation("cloudformation", "GetTemplate")

ORDER = (
    "cost",
    "delivery",
    "metrics",
    "alerts",
    "secrets",
    MODEL_CACHE,
    "karpenter",
    "cluster",
    "registry",
    "network",
)
"""Concerns, consumers before their producers."""


@dataclass(frozen=True)
class DeployedStack:
    """An existing stack. `protected`: it has termination protection."""

    name: str
    status: str
    protected: bool


@dataclass(frozen=True)
class DestroyableStack(DeployedStack):
    """A stack that `cdk destroy` deletes. `kept`: types of its resources that are retained."""

    kept: tuple[str, ...]


def environment_stacks(ask: Ask, environment: str) -> tuple[DeployedStack, ...]:
    """The stacks with the environment's tag.

    Raises:
        Unanswered: AWS does not answer.
    """
    return tuple(
        DeployedStack(
            stack["StackName"], stack["StackStatus"], bool(stack.get("EnableTerminationProtection"))
        )
        for stack in ask(DESCRIBE_STACKS)["Stacks"]
        if _tags(stack).get(ENVIRONMENT_TAG) == environment
    )


def destroyable_stacks(ask: Ask, environment: str) -> list[DestroyableStack]:
    """The subset of these with names that the app gives, in deletion order.

    The name alone would match the stacks of environment `prod-eu` for `prod`.

    Raises:
        Unanswered: AWS does not answer.
    """
    prefix = stack_name(environment, "")
    ours = [stack for stack in environment_stacks(ask, environment) if stack.name.startswith(prefix)]
    ours.sort(key=lambda stack: _position(stack.name.removeprefix(prefix)))
    return [DestroyableStack(each.name, each.status, each.protected, _kept(ask, each.name)) for each in ours]


def deployed_template(ask: Ask, stack: str) -> dict[str, Any]:
    """The template of a stack as it was deployed; empty if it is no JSON.

    Raises:
        Unanswered: AWS does not answer; a Refusal if there is no such stack.
    """
    template = ask(_TEMPLATE, StackName=stack)["TemplateBody"]
    return template if isinstance(template, dict) else {}


def _kept(ask: Ask, stack: str) -> tuple[str, ...]:
    resources = deployed_template(ask, stack).get("Resources", {})
    kept = {
        each["Type"]
        for each in resources.values()
        if each.get("DeletionPolicy", "Delete").startswith("Retain")
    }
    return tuple(sorted(kept))


def _tags(stack: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}


def _position(concern: str) -> int:
    return ORDER.index(concern) if concern in ORDER else -1
