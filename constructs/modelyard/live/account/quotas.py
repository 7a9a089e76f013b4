"""EC2 service quotas against the plan's usage and the quotas stated in the environment file."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.answers import Refusal, Unanswered
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, one_by_one, problem
from modelyard.planning.quota import QuotaNeed

APPLIED_QUOTA = Operation("service-quotas", "GetServiceQuota")
DEFAULT_QUOTA = Operation("service-quotas", "GetAWSDefaultServiceQuota")
_REQUESTS = Operation("service-quotas", "ListRequestedServiceQuotaChangeHistoryByQuota")


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    needs = {need.code: need for need in case.plan.quotas}
    codes = [*needs, *(code for code in case.environment.quotas if code not in needs)]
    yield from one_by_one(codes, lambda code: _quota(ask, case, code, needs.get(code)))


def _quota(ask: Ask, case: Case, code: str, need: QuotaNeed | None) -> Diagnosis:
    name, has = applied_quota(ask, code)
    needed = need.needed_vcpu if need else 0
    stated = case.environment.quotas.get(code)
    facts = f"{name}: the account has {has} vCPU, the plan needs {needed}"
    paste = f"quotas: {{{code}: {has}}}"
    if has < needed:
        request = (
            f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} "
            f"--desired-value {needed} --region {case.environment.region}"
        )
        fix = [request]
        if pending := _pending(ask, code):
            fix.append(pending)
        if need and need.reserved_vcpu:
            fix.append(
                f"{need.reserved_vcpu} of them are for reservations: where these are Capacity Blocks, state the quota of "
                "blocks under `quotas` and the plan counts against that"
            )
        if stated is not None and stated != has:
            fix.append(f"{case.file} says {stated}; until the increase is granted: {paste}")
        return problem(code, facts, "\n".join(fix))
    if stated is not None and stated > has:
        return problem(code, f"{facts}, and {case.file} says {stated}", f"in {case.file}: {paste}")
    if stated is not None and stated < has:
        return ok(code, f"{facts}; {case.file} says {stated}, you may write {paste}")
    if stated is None:
        return ok(code, f"{facts}; {case.file} does not say so yet, you may write {paste}")
    return ok(code, facts)


def applied_quota(ask: Ask, code: str) -> tuple[str, int]:
    """Name and value. In some regions an unchanged quota has no account-specific value."""
    try:
        quota = ask(APPLIED_QUOTA, ServiceCode="ec2", QuotaCode=code)["Quota"]
    except Refusal as refused:
        if refused.code != "NoSuchResourceException":
            raise
        quota = ask(DEFAULT_QUOTA, ServiceCode="ec2", QuotaCode=code)["Quota"]
    return quota["QuotaName"], int(quota["Value"])


def _pending(ask: Ask, code: str) -> str:
    """An open increase request: AWS rejects a second one meanwhile."""
    try:
        history = ask(_REQUESTS, ServiceCode="ec2", QuotaCode=code)["RequestedQuotas"]
    except Unanswered as why:
        return f"whether that was requested before was not checked: {why}"
    still_open = [each for each in history if each["Status"] in ("PENDING", "CASE_OPENED")]
    return "; ".join(
        f"{int(each['DesiredValue'])} were requested on {each['Created']:%Y-%m-%d}, status {each['Status']}"
        for each in still_open
    )


QUOTAS = AccountCheck("quotas", (APPLIED_QUOTA, DEFAULT_QUOTA, _REQUESTS), _judge)
