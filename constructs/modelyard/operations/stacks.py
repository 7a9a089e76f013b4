"""The stacks of an environment as CloudFormation has them, in the order in which they can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelyard.account.session import Account, Action
from modelyard.planning.identity import ENVIRONMENT_TAG

_DESCRIBE = Action("cloudformation", "DescribeStacks")
_TEMPLATE = Action("cloudformation", "GetTemplate")

ORDER = ("delivery", "cost", "metrics", "secrets", "model-cache", "karpenter", "cluster", "network")
"""Concerns, consumers before what they use."""


@dataclass(frozen=True)
class DeployedStack:
    """`kept` are types of resources that stay when the stack goes."""

    name: str
    status: str
    protected: bool
    kept: tuple[str, ...]


def deployed_stacks(account: Account, environment: str) -> list[DeployedStack]:
    """The stacks that exist.

    Raises:
        Unanswered: the account does not tell.
    """
    prefix = f"modelyard-{environment}-"
    found = {
        stack["StackName"].removeprefix(prefix): stack
        for stack in account.ask(_DESCRIBE)["Stacks"]
        # The name alone would take the stacks of environment `prod-eu` for those of `prod`.
        if stack["StackName"].startswith(prefix) and _environment(stack) == environment
    }
    return [
        DeployedStack(
            name=stack["StackName"],
            status=stack["StackStatus"],
            protected=bool(stack.get("EnableTerminationProtection")),
            kept=_kept(account, stack["StackName"]),
        )
        for _, stack in sorted(found.items(), key=lambda pair: _position(pair[0]))
    ]


def _environment(stack: dict[str, Any]) -> str | None:
    tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", ())}
    return tags.get(ENVIRONMENT_TAG)


def _position(concern: str) -> int:
    return ORDER.index(concern) if concern in ORDER else -1


def _kept(account: Account, stack: str) -> tuple[str, ...]:
    template = account.ask(_TEMPLATE, StackName=stack)["TemplateBody"]
    resources = template.get("Resources", {}) if isinstance(template, dict) else {}
    return tuple(
        sorted(
            {
                each["Type"]
                for each in resources.values()
                if each.get("DeletionPolicy", "Delete").startswith("Retain")
            }
        )
    )
