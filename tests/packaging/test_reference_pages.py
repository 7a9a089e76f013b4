"""The generated reference has every command, key and exit code, each with its explanation."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from modelyard.cli.commands import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
MANUAL = DOCS / "manual" / "share" / "man" / "man1" / "modelyard.1"


def rows(page: str) -> list[list[str]]:
    """Cells of the page's table rows, without heads and rules."""
    lines = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| |", "| Key"))
    ]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_key_of_every_file_is_described() -> None:
    page = (REFERENCE / "files.md").read_text(encoding="utf-8")

    assert [row[0] for row in rows(page) if not row[-1]] == []


def test_every_command_and_option_is_described() -> None:
    page = (REFERENCE / "commands.md").read_text(encoding="utf-8")

    assert [name for name in COMMANDS if f"\n## modelyard {name}\n" not in page] == []
    assert [row for row in rows(page) if not row[-1]] == []


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_formatted_without_a_complaint() -> None:
    run = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", MANUAL],
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stderr == ""
    assert "EXIT STATUS" in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", run.stdout)
