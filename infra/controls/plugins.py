"""cdk-nag, cfn-guard and our own rules as plugins of a CDK app: with them, a finding fails `cdk synth`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
import jsii
from cdk_nag import AwsSolutionsChecks
from cdklabs.cdk_validator_cfnguard import CfnGuardValidator

from infra.controls.acknowledgement import Place
from infra.controls.acknowledgements import ACKNOWLEDGEMENTS
from infra.controls.template_rules import RULES, broken_rules
from infra.controls.violation import Checker, Violation
from infra.environment_stack import EnvironmentStack

PLUGINS: Final[dict[str, Checker]] = {
    "AwsSolutions": "cdk-nag",
    "cdk-validator-cfnguard": "cfn-guard",
    "modelyard": "template-rules",
    "CloudFormation Validate": "cfn-validate",
}
"""Plugin name in reports and acknowledgements to our name for the checker."""

BROKEN_GUARD_RULES: Final = ("ct-lambda-pr-3",)
"""The plugin crashes on this rule's result for a function whose subnets are parameters, and loses all other
results (0.0.62).

The rule requires functions to be in a VPC; checkov's CKV_AWS_117 requires the same.
"""

REPORT: Final = "validation-report.json"


@jsii.implements(cdk.IPolicyValidationPlugin)
class TemplateRules:
    """`infra.controls.template_rules` with CDK's plugin interface."""

    @property
    def name(self) -> str:
        return "modelyard"

    @property
    def version(self) -> str:
        return "1"

    @property
    def rule_ids(self) -> list[str]:
        return list(RULES)

    def validate(self, context: cdk.IPolicyValidationContext) -> cdk.PolicyValidationPluginReport:
        violations = [
            cdk.PolicyViolation(
                rule_name=rule,
                description=message,
                violating_resources=[
                    cdk.PolicyViolatingResource(
                        template_path=path, resource_logical_id=name, locations=[f"/Resources/{name}"]
                    )
                ],
            )
            for path in context.template_paths
            for rule, name, message in broken_rules(json.loads(Path(path).read_text(encoding="utf-8")))
        ]
        return cdk.PolicyValidationPluginReport(success=not violations, violations=violations)


def add_controls(app: cdk.App) -> None:
    """Make the synthesis of `app` fail on findings of cdk-nag, cfn-guard or our own rules, unless they are
    accepted."""
    _acknowledge([child for child in app.node.find_all() if isinstance(child, cdk.Stack)])
    cdk.Validations.of(app).add_plugins(
        AwsSolutionsChecks(),
        cast(cdk.IPolicyValidationPlugin, CfnGuardValidator(disabled_rules=list(BROKEN_GUARD_RULES))),
        cast(cdk.IPolicyValidationPlugin, TemplateRules()),
    )


def place_of(stack: cdk.Stack) -> Place:
    if not isinstance(stack, EnvironmentStack):
        return Place(stack.account, stack.region, disposable=False)
    settings = stack.settings
    return Place(
        stack.account, stack.region, settings.removal == "destroy", settings.cache.read_buckets, settings.name
    )


def _acknowledge(stacks: Sequence[cdk.Stack]) -> None:
    """Write every acknowledgement to its constructs."""
    names = {checker: plugin for plugin, checker in PLUGINS.items()}
    everywhere = [stack.node.path for stack in stacks]
    for stack in stacks:
        place = place_of(stack)
        within = tuple(f"{path}/" for path in everywhere if path.startswith(f"{stack.node.path}/"))
        children = {
            path_in_stack(stack, child): child
            for child in stack.node.find_all()
            if not f"{child.node.path}/".startswith(within)  # stacks of a stage are handled separately
        }
        for each in ACKNOWLEDGEMENTS:
            if each.checker not in names:
                continue
            for path in (path for path in children if fnmatchcase(path, each.path)):
                for rule in each.rules_in(place):
                    cdk.Validations.of(children[path]).acknowledge(
                        cdk.Acknowledgment(id=f"{names[each.checker]}::{rule}", reason=each.reason)
                    )


def path_in_stack(stack: cdk.Stack, construct: Any) -> str:
    """Path of `construct` starting with the stack's name, whether or not the stack is in a stage."""
    path: str = construct.node.path
    return stack.node.id + path.removeprefix(stack.node.path)


class CheckerFailed(Exception):
    """A checker failed, so its missing findings prove nothing."""


def read_report(assembly: Path, stacks: Iterable[str]) -> tuple[list[Violation], list[Violation]]:
    """The plugins' findings for these stacks, by construct path: findings that fail the app, and acknowledged
    ones.

    Raises:
        CheckerFailed: a plugin failed, which CDK reports as a finding without a place.
    """
    report = json.loads((assembly / REPORT).read_text(encoding="utf-8"))
    found: list[Violation] = []
    acknowledged: list[Violation] = []
    for plugin in report["pluginReports"]:  # plugins without findings are not in the report
        if problem := plugin.get("metadata", {}).get("error"):
            raise CheckerFailed(f"{plugin['pluginName']}: {' '.join(problem.split())}")
        for key, into in (("violations", found), ("suppressedViolations", acknowledged)):
            into += _violations(PLUGINS[plugin["pluginName"]], plugin.get(key, []), tuple(stacks))
    return found, acknowledged


def _violations(
    checker: Checker, reported: Iterable[dict[str, Any]], stacks: Iterable[str]
) -> Iterator[Violation]:
    for violation in reported:
        for construct in violation["violatingConstructs"]:
            path: str = construct["constructPath"]
            if not path:  # cfn-guard sometimes reports a rule without a place
                yield Violation(checker, violation["ruleName"], "", violation["description"].splitlines()[0])
                continue
            # A pipeline's stacks are nested in the pipeline stack: take the innermost.
            stack = max((each for each in stacks if f"{path}/".startswith(f"{each}/")), key=len)
            outside = stack.removesuffix(stack.rpartition("/")[2])
            message = violation["description"].splitlines()[0]
            yield Violation(checker, violation["ruleName"], path.removeprefix(outside), message)
