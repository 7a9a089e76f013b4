"""Tables in a terminal, in a pipe and in 80 columns: every cell is there, whole."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from modelyard.cli.printing import console, count, table

CELLS = st.text("abz0é日本-$", max_size=30)
COLUMNS = ("MODEL", "RUNS ON", "INSTANCE", "MAX LEN", "AT ONCE", "$/h")


def printed(content: RenderableType, width: int = 100_000) -> str:
    out, text = console(), io.StringIO()
    out.file, out.width = text, width
    out.print(content)
    return text.getvalue()


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right() -> None:
    text = printed(
        table(
            "two", ("NAME", "GiB", "WHY"), [("a", "1.5", "日本"), ("long-name", "10.0", "x")], right=["GiB"]
        )
    )

    assert text.splitlines() == [
        "two",
        "",
        " NAME         GiB   WHY",
        " ───────────────────────",
        " a            1.5   日本",
        " long-name   10.0   x",
        "",
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(*(CELLS for _ in COLUMNS)), max_size=5), st.sampled_from([80, 120, 200, 100_000]))
def test_every_cell_is_there_and_no_line_is_longer_than_the_terminal(
    rows: list[tuple[str, ...]], width: int
) -> None:
    text = printed(table("", COLUMNS, rows, right=COLUMNS[3:]), width)

    assert all(cell_len(line) <= width for line in text.splitlines())
    assert all(line == line.rstrip() for line in text.splitlines())
    for column, *cells in zip(COLUMNS, *rows, strict=True):
        assert column in text
        assert all(cell in text for cell in cells)


def test_what_does_not_fit_beside_comes_below_with_the_first_column_again() -> None:
    row = ("model-a", "l40s:1", "g6e.xlarge", "40960", "4.1", "$3.72-30.31")
    lines = printed(table("", COLUMNS, [row], right=COLUMNS[3:]), 50).splitlines()

    heads = [line.split("  ")[0].strip() for line in lines if line.strip()]
    assert heads == ["MODEL", lines[1].strip(), "model-a", "MODEL", lines[5].strip(), "model-a"]
    assert [head for line in lines if "MODEL" in line for head in re.split(r" {3,}", line.strip())] == [
        *COLUMNS[:4],
        "MODEL",
        *COLUMNS[4:],
    ]


def test_a_wide_first_column_stands_above_its_row() -> None:
    name = "unsloth/" + "x" * 40
    lines = printed(table("", ("MODEL", "GiB", "WHY"), [(name, "1.5", "so")], right=["GiB"]), 60).splitlines()

    assert lines == [" MODEL", "   GiB   WHY", "   ─────────", f" {name}", "   1.5   so", ""]


def test_a_long_text_continues_below_itself_between_words() -> None:
    lines = printed(table("", ("CHECK", "WHY"), [("quota", "this is a long reason " * 5)]), 60).splitlines()

    assert len(lines) > 4
    assert all(line.startswith(" " * 9) for line in lines[3:-1])
    assert " ".join(" ".join(lines[2:]).split()) == f"quota {'this is a long reason ' * 5}".strip()


def test_a_word_longer_than_the_terminal_is_not_broken() -> None:
    arn = "arn:aws:eks:us-east-2:123456789012:cluster/" + "x" * 60
    assert arn in printed(table("", ("KIND", "ID"), [("cluster", arn)]), 80)


def test_colours_in_a_cell_change_no_width() -> None:
    rows = [("a", Text("####", style="blue")), ("bb", Text("##", style="red"))]
    lines = printed(table("", ("NAME", "BAR"), rows)).splitlines()

    assert lines[2:4] == [" a      ####", " bb     ##  "]


def test_a_credential_is_hidden() -> None:
    assert "hf_" + "a" * 34 not in printed(table("", ("A",), [("hf_" + "a" * 34,)]))


def test_one_is_no_plural() -> None:
    assert (count(1, "model"), count(0, "model"), count(2, "model")) == ("1 model", "0 models", "2 models")


@pytest.mark.parametrize(("columns", "most"), [("80", 80), ("200", 200), (None, None)])
def test_a_pipe_gets_whole_rows_unless_columns_says_how_wide_it_is(
    columns: str | None, most: int | None
) -> None:
    environment = {"PATH": "/usr/bin:/bin"} | ({"COLUMNS": columns} if columns else {})
    done = subprocess.run(
        [sys.executable, "-c", "from modelyard.cli.entry import main; main()", "catalog", "models"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )

    lines = done.stdout.splitlines()
    assert "10485760" in done.stdout
    assert "Mistral-Small-3.1-24B-Instruct-2503-int4-AutoRound-awq-" in done.stdout
    if most is None:
        assert sum(line.startswith(" BAAI/bge-m3 ") for line in lines) == 1
    else:
        assert max(map(len, lines)) <= most
