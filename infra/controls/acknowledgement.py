"""Acknowledgements of findings: which checker, which rule, where, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from infra.controls.violation import Checker, Violation


@dataclass(frozen=True)
class Place:
    """Account, region, buckets and environment of some stacks."""

    account: str
    region: str
    disposable: bool
    buckets: tuple[str, ...] = ()  # buckets that model servers read and the stacks do not own
    environment: str = ""


@dataclass(frozen=True)
class AcceptedRules:
    """One reason for one or more rules of a checker.

    Rules are exact, with `{account}`, `{region}` and `{environment}` for the stack's own, and `{bucket}` for
    each of its buckets; paths are patterns for construct paths, starting with the stack's name.
    """

    checker: Checker
    rules: tuple[str, ...]
    path: str
    reason: str
    disposable: bool = False  # only if `removal` is destroy: not for production

    def covers(self, violation: Violation, place: Place) -> bool:
        return (
            self.checker == violation.checker
            and violation.rule in self.rules_in(place)
            and fnmatchcase(violation.path, self.path)
        )

    def rules_in(self, place: Place) -> tuple[str, ...]:
        """The rules accepted in `place`, under the checker's names there."""
        return tuple(named for rule in self.rules for named in self.names_of(rule, place))

    def names_of(self, rule: str, place: Place) -> tuple[str, ...]:
        """Names of one of the rules in `place`; empty if it is not accepted there."""
        if self.disposable and not place.disposable:
            return ()
        named = rule.replace("{account}", place.account).replace("{region}", place.region)
        named = named.replace("{environment}", place.environment)
        if "{bucket}" in named:
            return tuple(named.replace("{bucket}", bucket) for bucket in place.buckets)
        return (named,)


def managed(*names: str) -> tuple[str, ...]:
    """cdk-nag's rules for AWS managed policies."""
    return tuple(f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]" for name in names)


def wild(*resources: str) -> tuple[str, ...]:
    """cdk-nag's rules for resource wildcards."""
    return tuple(f"AwsSolutions-IAM5[Resource::{resource}]" for resource in resources)
