"""Console output: data on standard output, findings and progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from modelyard.cli.tables import Cell, Table
from modelyard.findings import Finding, Severity
from modelyard.secret_values import mask

SCHEMA_VERSION = 1
_LEFT_SHOWN = 5
# Width of a pipe: its reader wants whole lines.
_ENDLESS = 100_000


class _BareConsole(Console):
    """A console that masks known credentials, wherever the text comes from."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_bare(each) for each in objects), **{"crop": False, **options})


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
    """A console that honours COLUMNS, FORCE_COLOR, and NO_COLOR strictly: rich alone would still print bold.
    A pipe has no width limit."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    result = _BareConsole(stderr=stderr, highlight=False, color_system=colours)
    if not result.file.isatty() and not os.environ.get("COLUMNS", "").isdecimal():
        result.width = _ENDLESS
    return result


def print_json(kind: str, **content: Any) -> None:
    """One JSON document with its kind and version; keys in the given order."""
    typed = {"schemaVersion": SCHEMA_VERSION, "kind": kind, **_bare_json(content)}
    sys.stdout.write(json.dumps(typed, indent=2, ensure_ascii=False) + "\n")


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Sequence[str] = ()
) -> Table:
    """A plain table; columns named in `right` hold numbers."""
    masked = (tuple(mask(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    return Table(title, tuple(columns), tuple(masked), frozenset(right))


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
