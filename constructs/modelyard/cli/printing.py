"""Console output: data on standard output, findings and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from modelyard.findings import Finding, Severity
from modelyard.secret_values import mask

SCHEMA_VERSION = 1
_LEFT_SHOWN = 5
# A table wrapped to a narrow terminal, or to the 80 columns that rich assumes for a pipe, is unreadable:
# lines run over instead, as in kubectl.
_LEAST_WIDTH = 150


class _BareConsole(Console):
    """A console that masks known credentials, wherever the text comes from."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_bare(each) for each in objects), **options)


def _bare(content: Any) -> Any:
    if isinstance(content, str):
        return mask(content)
    if isinstance(content, Text) and (bare := mask(content.plain)) != content.plain:
        return Text(bare)
    return content


def _bare_json(content: Any) -> Any:
    if isinstance(content, str):
        return mask(content)
    if isinstance(content, Mapping):
        return {_bare_json(key): _bare_json(value) for key, value in content.items()}
    return [_bare_json(value) for value in content] if isinstance(content, list | tuple) else content


def console(*, stderr: bool = False) -> Console:
    """A console that honours FORCE_COLOR, and NO_COLOR strictly: rich alone would still print bold."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    result = _BareConsole(stderr=stderr, highlight=False, color_system=colours)
    result.width = max(result.width, _LEAST_WIDTH)
    return result


def print_json(kind: str, **content: Any) -> None:
    """One JSON document with its kind and version; keys in the given order."""
    typed = {"schemaVersion": SCHEMA_VERSION, "kind": kind, **_bare_json(content)}
    sys.stdout.write(json.dumps(typed, indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class _Rows:
    """Rows of a table. rich takes a millisecond per row, so lines that need no wrapping are joined here."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = zip(self.columns, *self.rows, strict=True)
        widths = [max(map(cell_len, column)) for column in columns]
        width = sum(widths) + 3 * len(widths) - 1
        multiline = any("\n" in cell for row in self.rows for cell in row)
        if multiline or max(width, cell_len(self.title)) > min(width, options.max_width):
            yield rich_table(self.title, self.columns, self.rows, right=self.right)
            return
        rule = "─" * (width - 2)
        if self.title:
            yield from _line(self.title, width, console.get_style("bold"))
        yield from _line("", width)
        yield from _line(self._joined(self.columns, widths), width, console.get_style("table.header"))
        yield from _line(f" {rule} ", width)
        for row in self.rows:
            yield from _line(self._joined(row, widths), width)
        yield from _line("", width)

    def _joined(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = zip(self.columns, row, widths, strict=True)
        return f" {'   '.join(self._padded(*each) for each in cells)} "

    def _padded(self, column: str, cell: str, width: int) -> str:
        space = " " * (width - cell_len(cell))
        return space + cell if column in self.right else cell + space


def rich_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = ()
) -> Table:
    """A table with more columns and rows; cells that do not fit are wrapped."""
    result = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in right else "left"
        result.add_column(column, justify=justify, overflow="fold", no_wrap=column != columns[-1])
    for row in rows:
        result.add_row(*(Text(mask(cell)) for cell in row))
    return result


def _line(text: str, width: int, style: Style | None = None) -> Iterable[Segment]:
    return Segment(set_cell_size(text, width), style), Segment.line()


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> RenderableType:
    """A plain table; columns named in `right` are right-aligned numbers."""
    masked = (tuple(mask(cell) for cell in row) for row in rows)
    return _Rows(title, tuple(columns), tuple(masked), frozenset(right))


_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def print_findings(findings: Iterable[Finding]) -> None:
    """One line per finding: place, code, level, message; the fix below it."""
    out = console(stderr=True)
    for finding in findings:
        place = (
            f"{finding.location} " if finding.location else f"{finding.subject} " if finding.subject else ""
        )
        line = Text(place)
        line.append(f"{finding.code} {finding.level}", style=_STYLES[finding.level])
        line.append(f": {finding.message}\n    {finding.fix}")
        out.print(line, soft_wrap=True)


def print_left_alone(names: Sequence[object]) -> None:
    """Files that others wrote, for commands that replace and delete only our files."""
    shown = ", ".join(map(str, names[:_LEFT_SHOWN]))
    more = f" and {len(names) - _LEFT_SHOWN} more" if len(names) > _LEFT_SHOWN else ""
    console(stderr=True).print(
        f"left alone, not written by modelyard: {shown}{more}", soft_wrap=True, markup=False
    )


def finding_json(finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "code": finding.code,
        "severity": str(finding.level),
        "file": mask(place.file) if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "subject": finding.subject or None,
        "message": finding.message,
        "fix": finding.fix,
    }


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def dollars(amount: float | None) -> str:
    return "no price" if amount is None else f"${amount:,.2f}"


def seconds(amount: int) -> str:
    return f"{amount} s" if amount < 120 else f"{round(amount / 60)} min"
