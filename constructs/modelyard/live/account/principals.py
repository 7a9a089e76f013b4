"""Whether IAM knows those whom the cluster admits: EKS refuses an access entry for a principal that does not
exist, and CloudFormation then rolls the cluster back."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, one_by_one, problem, unknown
from modelyard.spec import Environment

_ROLE = Operation("iam", "GetRole")
_USER = Operation("iam", "GetUser")


def admitted(environment: Environment) -> dict[str, list[str]]:
    """Principal to the keys of the environment file that name it."""
    named: dict[str, list[str]] = {}
    cluster = environment.cluster
    for key, principals in (
        ("cluster.admins", cluster.admins),
        ("cluster.viewers", cluster.viewers),
        *((f"teams.{name}.principals", team.principals) for name, team in environment.teams.items()),
    ):
        for principal in principals:
            named.setdefault(principal, []).append(key)
    return named


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    principals = admitted(case.environment)

    def judge(principal: str) -> Diagnosis:
        keys = ", ".join(dict.fromkeys(principals[principal]))
        account, resource = principal.split(":", 5)[4:]
        kind, _, path = resource.partition("/")
        name = path.rpartition("/")[2]
        if account != case.environment.account:
            return unknown(principal, f"{keys}: it is of account {account}, which is not asked")
        try:
            found = (
                ask(_ROLE, RoleName=name)["Role"] if kind == "role" else ask(_USER, UserName=name)["User"]
            )["Arn"]
        except Refusal as refused:
            if refused.code not in ("NoSuchEntity", "NoSuchEntityException"):
                raise
            return problem(
                principal,
                f"{keys}: IAM has no such {kind}; EKS would refuse it, and a new cluster would be rolled back",
                f"create the {kind}, or correct {keys} in {case.file}: `aws iam list-{kind}s --query '{kind.title()}s[].Arn'`",
            )
        if found != principal:
            return problem(
                principal, f"{keys}: the {kind}'s ARN is {found}", f"in {case.file}: {keys}: [{found}]"
            )
        return ok(principal, f"{keys}: the {kind} exists")

    yield from one_by_one(principals, judge)


PRINCIPALS = AccountCheck("principals", (_ROLE, _USER), _judge)
