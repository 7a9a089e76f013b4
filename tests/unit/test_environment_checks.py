"""Plan checks of an environment on its own."""

from __future__ import annotations

from tests.unit.given import a_model, a_plan, an_environment

ROLE = "arn:aws:iam::123456789012:role/"


def test_a_principal_that_administers_and_only_reads_is_a_contradiction() -> None:
    lists = {"admins": [f"{ROLE}boss"], "viewers": [f"{ROLE}on-call", f"{ROLE}boss"]}

    found = [
        each
        for each in a_plan(a_model(), environment=an_environment(cluster=lists)).findings
        if each.code == "SEC006"
    ]

    assert [each.field for each in found] == [("cluster", "viewers", 1)]
    assert f"{ROLE}boss" in found[0].message


def test_a_principal_of_a_team_may_administer_or_read_too() -> None:
    environment = an_environment(
        cluster={"admins": [f"{ROLE}boss"], "viewers": [f"{ROLE}on-call"]},
        teams={"search": {"principals": [f"{ROLE}boss", f"{ROLE}on-call"]}},
    )

    assert "SEC006" not in {each.code for each in a_plan(a_model(), environment=environment).findings}
