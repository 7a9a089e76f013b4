"""Mistakes, each caught, and by which checkers. A checker that stops, or starts, detecting one fails
here."""

from __future__ import annotations

import pytest

from tests.controls.conftest import Surveys
from tests.controls.planted import MISTAKES, Mistake

pytestmark = pytest.mark.story


def catchers(mistake: Mistake, surveys: Surveys) -> dict[str, list[str]]:
    """Checker to the rules with which it points at the planted resource, and did not before."""
    before = {(each.checker, each.rule, each.path) for each in surveys.production.violations}
    found: dict[str, list[str]] = {}
    for each in sorted(surveys.planted.verdict.open):
        if each.path == mistake.place and (each.checker, each.rule, each.path) not in before:
            found.setdefault(each.checker, []).append(each.rule)
    return {checker: sorted(set(rules)) for checker, rules in found.items()}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_caught(name: str, surveys: Surveys) -> None:
    mistake = MISTAKES[name]

    assert set(catchers(mistake, surveys)) == mistake.caught_by
    assert mistake.caught_by


def test_every_finding_on_the_planted_app_is_about_something_planted(surveys: Surveys) -> None:
    """No acknowledgement hides a mistake, and no checker cries because of another one's."""
    places = set().union(*(mistake.places for mistake in MISTAKES.values()))
    strangers = {each for each in surveys.planted.verdict.open if each.path not in places}

    assert strangers == set()


def test_the_planted_app_is_refused_by_its_own_synthesis(surveys: Surveys) -> None:
    """What the scanners outside of CDK see comes on top; none of these needs them."""
    places = set().union(*(mistake.places for mistake in MISTAKES.values()))

    assert {each.path for each in surveys.planted.refused} == places


def test_the_table_of_who_catches_what(surveys: Surveys, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print()
        for name, mistake in MISTAKES.items():
            rules = [f"{by}: {', '.join(rules)}" for by, rules in catchers(mistake, surveys).items()]
            print(f"  {name:20} {'; '.join(rules)}")
    assert all(catchers(mistake, surveys) for mistake in MISTAKES.values())
