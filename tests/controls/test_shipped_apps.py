"""Every app of this repository passes every checker, and every acknowledgement still matches a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.controls.conftest import ROOT, Surveys

if TYPE_CHECKING:
    from infra.controls.survey import Survey

pytestmark = pytest.mark.story


def errors_of_cfn_lint(survey: Survey, stack: str = "") -> list[str]:
    """Of one stack, or of all."""
    return [
        str(found)
        for found in survey.violations
        if found.checker == "cfn-lint" and found.rule[0] == "E" and found.path.startswith(stack)
    ]


APPS = ["dev", "local", "pipeline", "prod", "staging"]


def test_no_app_is_left_out(surveys: Surveys) -> None:
    assert sorted(surveys.shipped) == APPS
    assert {path.stem for path in (ROOT / "environments").glob("*.yaml")} <= set(APPS)


@pytest.mark.parametrize("name", APPS)
def test_no_finding_is_open(name: str, surveys: Surveys) -> None:
    assert [str(each) for each in surveys.shipped[name].verdict.open] == []


@pytest.mark.parametrize("name", APPS)
def test_synthesis_with_the_plugins_is_not_refused(name: str, surveys: Surveys) -> None:
    """What is accepted by the table and what CDK takes as acknowledged are the same."""
    assert surveys.shipped[name].refused == frozenset()


@pytest.mark.parametrize("checker", ["cdk-nag", "cfn-guard", "cfn-lint", "checkov"])
def test_every_checker_has_looked(checker: str, surveys: Surveys) -> None:
    """A checker that says nothing at all may not have run; each has something that is accepted."""
    for each in surveys.shipped.values():
        assert any(found.checker == checker for found in each.violations), each.name


@pytest.mark.parametrize("stack", ["Network", "Cluster", "Karpenter", "ModelCache", "Secrets", "Delivery"])
def test_cfn_lint_finds_no_error(stack: str, surveys: Surveys) -> None:
    """Not even one that is accepted."""
    assert stack in {each.stack for each in surveys.production.templates}
    assert errors_of_cfn_lint(surveys.production, stack) == []


def test_no_acknowledgement_is_stale(surveys: Surveys) -> None:
    from infra.controls.acknowledgements import SHIPPED
    from infra.controls.survey import stale

    assert stale(surveys.shipped.values(), SHIPPED) == []


def test_a_stale_acknowledgement_is_noticed(surveys: Surveys) -> None:
    from infra.controls.acknowledgements import SHIPPED
    from infra.controls.survey import stale

    victim = next(each for each in SHIPPED if each.rules == ("AwsSolutions-SQS3",))
    mended = [
        replace(
            each,
            violations=frozenset(found for found in each.violations if found.rule != "AwsSolutions-SQS3"),
        )
        for each in surveys.shipped.values()
    ]

    assert stale(mended, SHIPPED) == [(victim, "AwsSolutions-SQS3")]


def test_what_a_disposable_environment_may_do_production_may_not(surveys: Surveys) -> None:
    from infra.controls.acknowledgements import judge

    dev = surveys.shipped["dev"]
    kept = replace(dev.place, disposable=False)

    still_open = {each.rule for each in judge(dev.violations, kept).open}
    assert still_open == {"cloudwatch_log_group_retention_period_check"}


def test_every_reason_is_a_sentence_about_the_thing() -> None:
    from infra.controls.acknowledgements import ACKNOWLEDGEMENTS

    for each in ACKNOWLEDGEMENTS:
        assert len(each.reason.split()) >= 6, each
