"""What accepts a finding: which checker, which rule, where, and why."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from infra.controls.violation import Checker, Violation


@dataclass(frozen=True)
class Place:
    """Where stacks go."""

    account: str
    region: str
    disposable: bool
    buckets: tuple[str, ...] = ()  # those of others that model servers read


@dataclass(frozen=True)
class AcceptedRules:
    """One reason for one or more rules of a checker.

    Rules are exact, with `{account}` and `{region}` for the stack's own, and `{bucket}` for each of its
    buckets; paths are patterns over construct paths that begin with the stack's name.
    """

    checker: Checker
    rules: tuple[str, ...]
    path: str
    reason: str
    disposable: bool = False  # only where `removal` is destroy: nothing of it is for production

    def covers(self, violation: Violation, place: Place) -> bool:
        return (
            self.checker == violation.checker
            and violation.rule in self.rules_in(place)
            and fnmatchcase(violation.path, self.path)
        )

    def rules_in(self, place: Place) -> tuple[str, ...]:
        """The rules that are accepted in `place`, as the checker names them there."""
        return tuple(named for rule in self.rules for named in self.names_of(rule, place))

    def names_of(self, rule: str, place: Place) -> tuple[str, ...]:
        """What one of the rules is called in `place`; nothing where it is not accepted."""
        if self.disposable and not place.disposable:
            return ()
        named = rule.replace("{account}", place.account).replace("{region}", place.region)
        if "{bucket}" in named:
            return tuple(named.replace("{bucket}", bucket) for bucket in place.buckets)
        return (named,)


def managed(*names: str) -> tuple[str, ...]:
    """cdk-nag's rules for managed policies of AWS."""
    return tuple(f"AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{name}]" for name in names)


def wild(*resources: str) -> tuple[str, ...]:
    """cdk-nag's rules for wildcards in resources."""
    return tuple(f"AwsSolutions-IAM5[Resource::{resource}]" for resource in resources)
