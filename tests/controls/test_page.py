"""docs/explanation/controls.md agrees with the data and the tests."""

from __future__ import annotations

import re

from infra.controls.page import with_list
from tests.controls.conftest import ROOT

PAGE = ROOT / "docs" / "explanation" / "controls.md"


def test_the_page_lists_what_is_accepted() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert with_list(text) == text
    assert text.count("| cdk-nag | IAM4") > 5


def test_the_page_says_who_catches_what() -> None:
    from tests.controls.planted import MISTAKES

    text = PAGE.read_text(encoding="utf-8")
    section = text.split("## Mistakes, and")[1].split("\n## ")[0]
    stated = {
        name: frozenset(by.split(", "))
        for name, by in re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", section, re.MULTILINE)
    }
    del stated["Mistake"]

    assert stated == {name: mistake.caught_by for name, mistake in MISTAKES.items()}
    assert len(stated) >= 8
