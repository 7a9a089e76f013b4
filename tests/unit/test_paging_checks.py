"""Plan checks of who is told of alerts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.findings import Finding, Severity
from tests.unit.given import a_model, a_plan, an_environment

MAIL = {"sns": {"emails": ["on-call@example.com"]}}


def findings(code: str, *, policy: str = "strict", **monitoring: Any) -> list[Finding]:
    environment = an_environment(policy=policy, monitoring=monitoring)
    plan = a_plan(a_model(owner={"team": "search"}), environment=environment)
    return [each for each in plan.findings if each.code == code]


def test_a_strict_environment_that_pages_nobody_is_an_error() -> None:
    (found,) = findings("PAGE001")

    assert found.level is Severity.ERROR
    assert found.field == ("monitoring",)
    assert "receivers" in found.fix


def test_one_receiver_of_critical_alerts_is_enough() -> None:
    assert findings("PAGE001", receivers={"on-call": MAIL}) == []


@pytest.mark.parametrize(
    "receiver", [{**MAIL, "severities": ["warning"]}, {**MAIL, "teams": ["search"]}], ids=["severity", "team"]
)
def test_a_receiver_of_other_alerts_is_not_enough(receiver: dict[str, Any]) -> None:
    (found,) = findings("PAGE001", receivers={"on-call": receiver})

    assert found.field == ("monitoring", "receivers")


@pytest.mark.parametrize(
    ("policy", "monitoring"),
    [("relaxed", {}), ("strict", {"install": False}), ("strict", {"enabled": False})],
    ids=["relaxed", "an Alertmanager of their own", "no alerts"],
)
def test_who_need_not_page_is_not_asked(policy: str, monitoring: dict[str, Any]) -> None:
    assert findings("PAGE001", policy=policy, **monitoring) == []


def test_a_receiver_of_an_unmapped_secret_is_named_with_its_place() -> None:
    (found,) = findings("ENV002", receivers={"chat": {"slack": {"webhook": "slack", "channel": "#llm"}}})

    assert found.field == ("monitoring", "receivers", "chat", "slack", "webhook")
    assert "'slack'" in found.message


def test_a_receiver_of_a_team_without_models_is_named() -> None:
    (found,) = findings("ENV002", receivers={"theirs": {**MAIL, "teams": ["search", "serch"]}})

    assert found.field == ("monitoring", "receivers", "theirs", "teams", 1)
    assert "did you mean 'search'" in found.fix


@pytest.mark.parametrize(
    ("monitoring", "said"),
    [
        ({"receivers": {"on-call": {}}}, "exactly one of sns, slack, pagerDuty"),
        ({"receivers": {"on-call": {**MAIL, "pagerDuty": "key"}}}, "exactly one of"),
        ({"receivers": {"on-call": {"sns": {}}}}, "either emails"),
        ({"receivers": {"on-call": {**MAIL, "severities": []}}}, "at least 1"),
        ({"receivers": {"on-call": MAIL}, "install": False}, "receivers needs enabled and install"),
    ],
)
def test_a_receiver_that_tells_nobody_is_refused(monitoring: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        an_environment(monitoring=monitoring)
