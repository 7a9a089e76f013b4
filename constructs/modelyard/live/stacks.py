"""The stacks of an environment as CloudFormation has them, in the order in which they can be deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelyard.live.api.aws import Ask, Operation
from modelyard.names import ENVIRONMENT_TAG, MODEL_CACHE, stack_name

_DESCRIBE = Operation("cloudformation", "DescribeStacks")
_TEMPLATE = Operation("cloudformation", "GetTemplate")

ORDER = ("delivery", "cost", "metrics", "secrets", MODEL_CACHE, "karpenter", "cluster", "network")
"""Concerns, consumers before what they use."""


@dataclass(frozen=True)
class DeployedStack:
    """A stack that exists. `protected`: CloudFormation refuses to delete it."""

    name: str
    status: str
    protected: bool


@dataclass(frozen=True)
class DestroyableStack(DeployedStack):
    """A stack that `cdk destroy` takes away. `kept`: types of its resources that stay."""

    kept: tuple[str, ...]


def environment_stacks(ask: Ask, environment: str) -> tuple[DeployedStack, ...]:
    """The stacks that bear the environment's tag.

    Raises:
        Unanswered: the account does not tell.
    """
    return tuple(
        DeployedStack(
            stack["StackName"], stack["StackStatus"], bool(stack.get("EnableTerminationProtection"))
        )
        for stack in ask(_DESCRIBE)["Stacks"]
        if _tags(stack).get(ENVIRONMENT_TAG) == environment
    )


def destroyable_stacks(ask: Ask, environment: str) -> list[DestroyableStack]:
    """Those of them that the app has named, in the order in which they can be deleted.

    The name alone would take the stacks of environment `prod-eu` for those of `prod`.

    Raises:
        Unanswered: the account does not tell.
    """
    prefix = stack_name(environment, "")
    ours = [stack for stack in environment_stacks(ask, environment) if stack.name.startswith(prefix)]
    ours.sort(key=lambda stack: _position(stack.name.removeprefix(prefix)))
    return [DestroyableStack(each.name, each.status, each.protected, _kept(ask, each.name)) for each in ours]


def _kept(ask: Ask, stack: str) -> tuple[str, ...]:
    template = ask(_TEMPLATE, StackName=stack)["TemplateBody"]
    resources = template.get("Resources", {}) if isinstance(template, dict) else {}
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
