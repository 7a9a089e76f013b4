"""Whether the account can have the monitor of cost anomalies that the environment asks for."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, problem

_MONITORS = Operation("ce", "GetAnomalyMonitors")
_ORGANIZATION = Operation("organizations", "DescribeOrganization")


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    wanted = case.environment.cost.anomaly_monitor
    if wanted is None:
        return
    subject = f"anomalyMonitor: {wanted}"
    monitors = ask(_MONITORS)["AnomalyMonitors"]
    services = [each for each in monitors if each.get("MonitorDimension") == "SERVICE"]
    theirs = [each for each in services if each["MonitorName"] != f"modelyard-{case.environment.name}"]
    if wanted == "tag":
        payer = _payer(ask)
        if payer in (None, case.environment.account):
            yield ok(subject, "the account pays for itself")
        else:
            yield problem(
                subject,
                f"only the payer's account, {payer}, can have monitors of tags; stack Cost would fail",
                _fix(case, theirs),
            )
    elif wanted == "services":
        if theirs:
            yield problem(
                subject,
                f"the account has its one monitor of services already, {theirs[0]['MonitorName']}; stack Cost would fail",
                _fix(case, theirs),
            )
        else:
            yield ok(subject, "the account has no other monitor of services")
    elif wanted in {each.get("MonitorArn") for each in monitors}:
        yield ok(subject, "the account has this monitor")
    else:
        yield problem(subject, "the account has no such monitor; stack Cost would fail", _fix(case, theirs))


def _payer(ask: Ask) -> str | None:
    """The organisation's management account; None without an organisation."""
    try:
        payer: str = ask(_ORGANIZATION)["Organization"]["MasterAccountId"]
    except Refusal as refused:
        if refused.code != "AWSOrganizationsNotInUseException":
            raise
        return None
    return payer


def _fix(case: Case, services: list[dict[str, str]]) -> str:
    usable = services[0]["MonitorArn"] if services else "services"
    return f"in {case.file}: cost: {{anomalyMonitor: {usable}}}"


ANOMALIES = AccountCheck("anomalies", (_MONITORS, _ORGANIZATION), _judge)
