"""Stacks whose last operation left them in a state that the next deploy cannot leave."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.aws import Ask
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem
from modelyard.live.stacks import DESCRIBE_STACKS, DeployedStack, environment_stacks

_NEVER_DEPLOYED = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED")
_STUCK = ("UPDATE_ROLLBACK_FAILED", "DELETE_FAILED")


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    stacks = environment_stacks(ask, case.environment.name)
    for stack in stacks:
        if stack.status in _NEVER_DEPLOYED and (stack.protected or stack.status != "ROLLBACK_COMPLETE"):
            yield problem(
                stack.name,
                f"{stack.status}: its first deploy failed, and it must go first",
                _deletion(stack, case),
            )
        elif stack.status in _STUCK:
            command = "continue-update-rollback" if stack.status.startswith("UPDATE") else "delete-stack"
            yield problem(
                stack.name,
                f"{stack.status}: CloudFormation refuses every other change",
                f"aws cloudformation {command} --stack-name {stack.name} --region {case.environment.region}",
            )
        else:
            yield ok(stack.name, stack.status)


def _deletion(stack: DeployedStack, case: Case) -> str:
    region = f"--region {case.environment.region}"
    lines = []
    if stack.protected:
        lines.append(
            "aws cloudformation update-termination-protection --no-enable-termination-protection "
            f"--stack-name {stack.name} {region}"
        )
    if (
        stack.status == "ROLLBACK_FAILED"
        and stack.name.endswith("-cluster")
        and case.environment.deletion_protection
    ):
        lines.append(
            f"aws eks update-cluster-config --name {case.environment.cluster_name} --no-deletion-protection {region}"
        )
    lines.append(f"aws cloudformation delete-stack --stack-name {stack.name} {region}")
    return "\n".join(lines)


STACKS = AccountCheck("stacks", (DESCRIBE_STACKS,), _judge)
