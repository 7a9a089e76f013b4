"""Printed tables equal rich's, unless they need wrapping."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from modelyard.cli.printing import rich_table, table

CELLS = st.text("ab z0é日本-$", max_size=12).map(str.strip)


def printed(content: RenderableType, width: int = 200) -> str:
    out = Console(file=io.StringIO(), width=width)
    out.print(content)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@settings(max_examples=200, deadline=None)
@given(
    st.text("abc ", max_size=8),
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5),
    st.sets(st.sampled_from("ABC")),
)
def test_lines_joined_here_are_those_of_rich(
    title: str, rows: list[tuple[str, ...]], right: set[str]
) -> None:
    made, by_rich = (
        each(title.strip(), ("A", "B", "CCCCCCCC"), rows, right=sorted(right)) for each in (table, rich_table)
    )

    assert printed(made) == printed(by_rich)


@pytest.mark.parametrize("rows", [[("a", "b " * 60)], [("a", "b\nc")]])
def test_what_does_not_fit_a_line_is_wrapped(rows: list[tuple[str, str]]) -> None:
    text = printed(table("", ("A", "B"), rows), width=60)

    assert max(map(len, text.splitlines())) <= 60
    assert len(text.splitlines()) > 5


def test_a_credential_is_hidden() -> None:
    assert "hf_" + "a" * 34 not in printed(table("", ("A",), [("hf_" + "a" * 34,)]))
