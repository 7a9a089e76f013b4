"""Permissions of the pipeline's roles, where CDK Pipelines uses wildcards and offers no narrower list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import jsii
from aws_cdk import Aspects, DefaultStackSynthesizer, IAspect, Stack
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import IConstruct

from infra.bootstrap import bootstrap_role_arn

_UNUSED: Final = {"codebuild:CreateReportGroup", "logs:CreateLogGroup"}
"""First actions of statements that are not needed: report groups, and log groups other than the declared
one."""

_BEFORE_EXACT_ACTIONS: Final = 850


def narrow_permissions(stack: Stack) -> None:
    """Replace every `*` of CDK Pipelines: by its own stacks, its own projects, the bootstrap roles of its
    account.

    A wildcard that is not handled here stays, for the controls to find.
    """
    Aspects.of(stack).add(_Narrow(stack), priority=_BEFORE_EXACT_ACTIONS)


@jsii.implements(IAspect)
class _Narrow:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        arn = f"arn:{stack.partition}"
        here = f"{stack.region}:{stack.account}"
        assets = f"cdk-{DefaultStackSynthesizer.DEFAULT_QUALIFIER}-assets-{stack.account}-{stack.region}"
        stacks = [f"{arn}:cloudformation:{here}:stack/{name}/*" for name in (stack.stack_name, "CDKToolkit")]
        self._named: Mapping[str, Callable[[], Sequence[Any]]] = {
            "cloudformation:DescribeStacks": lambda: stacks,
            "s3:ListBucket": lambda: [f"{arn}:s3:::{assets}"],
            "sts:AssumeRole": self._bootstrap_roles,
            "codebuild:BatchGetBuilds": self._asset_projects,
            "codebuild:StartBuild": self._asset_projects,
            "codebuild:StopBuild": self._asset_projects,
        }

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, iam.CfnPolicy) and Stack.of(node).node.path == self._stack.node.path:
            document = self._stack.resolve(node.policy_document)
            narrowed = [each for statement in document["Statement"] for each in self._narrow(statement)]
            node.policy_document = {**document, "Statement": narrowed}

    def _narrow(self, statement: dict[str, Any]) -> Iterator[dict[str, Any]]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        if _UNUSED & set(actions):
            return
        if actions == ["codestar-connections:UseConnection"]:  # the service's name before 2024
            yield {**statement, "Action": [*actions, "codeconnections:UseConnection"]}
            return
        if statement["Resource"] != "*" and not _any_role(statement["Resource"]):
            yield statement
            return
        # Statements on "*" are merged: each action gets its own resources.
        for action in actions:
            resources = self._named[action]() if action in self._named else statement["Resource"]
            yield {**statement, "Action": action, "Resource": self._stack.resolve(resources)}

    def _bootstrap_roles(self) -> list[str]:
        stack = self._stack
        return [
            bootstrap_role_arn("deploy", account=stack.account, region=stack.region),
            bootstrap_role_arn("file-publishing", account=stack.account, region=stack.region),
        ]

    def _asset_projects(self) -> list[str]:
        assets = cast(Any, self._stack.node.find_child("Pipeline")).node.find_child("Assets")
        return [child.attr_arn for child in assets.node.find_all() if isinstance(child, codebuild.CfnProject)]


def _any_role(resource: object) -> bool:
    return isinstance(resource, str) and resource.startswith("arn:*:iam:") and resource.endswith(":role/*")
