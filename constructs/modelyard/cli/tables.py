"""Tables for a terminal, a pipe and 80 columns: a row is one line, and nothing in it is cut off.

A table that is wider than the terminal is divided into several, each with the first column. A first column of
more than half of the terminal stands on lines of its own. A long text continues below itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

Cell = str | Text

_GAP = "   "
_LEAST_TEXT = 20  # columns: a text is not folded into fewer


@dataclass(frozen=True)
class Table:
    """Rows below a head; `right` are the columns that hold numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        limit = options.max_width
        widths = [max(map(_width, column)) for column in zip(self.columns, *self.rows, strict=True)]
        above = len(widths) > 1 and widths[0] > limit // 2
        bold = console.get_style("bold")
        if self.title:
            yield Segment(self.title, bold)
            yield Segment("\n\n")
        for block in _blocks([0, *widths[1:]] if above else widths, limit):
            shown = [min(widths[at], _room(0 if above else widths[0], at, limit)) for at in block]
            if above:
                yield Segment(f" {self.columns[0]}\n", bold)
                block, shown = block[1:], shown[1:]
            indent = "   " if above else " "
            yield Segment(indent + self._line([self.columns[at] for at in block], block, shown), bold)
            yield Segment(f"\n{indent}{'─' * (sum(shown) + len(_GAP) * (len(block) - 1))}\n")
            for row in self.rows:
                if above:
                    yield Segment(f" {row[0]}".rstrip() + "\n")
                yield from self._row(console, [row[at] for at in block], block, shown, indent)
            yield Segment("\n")

    def _row(
        self, console: Console, cells: list[Cell], block: Sequence[int], widths: Sequence[int], indent: str
    ) -> Iterator[Segment]:
        if any(isinstance(cell, Text) for cell in cells):  # in colours, and never long
            line = Text(_GAP).join(
                [self._padded_text(*each) for each in zip(cells, block, widths, strict=True)]
            )
            yield Segment(indent)
            yield from line.render(console, end="\n")
            return
        folded = [_folded(str(cell), width) for cell, width in zip(cells, widths, strict=True)]
        for number in range(max(map(len, folded))):
            parts = [lines[number] if number < len(lines) else "" for lines in folded]
            yield Segment(f"{indent}{self._line(parts, block, widths)}".rstrip() + "\n")

    def _line(self, cells: Sequence[str], block: Sequence[int], widths: Sequence[int]) -> str:
        padded = [self._padded(*each) for each in zip(cells, block, widths, strict=True)]
        return _GAP.join(padded).rstrip()

    def _padded(self, cell: str, at: int, width: int) -> str:
        space = " " * (width - cell_len(cell))
        return space + cell if self.columns[at] in self.right else cell + space

    def _padded_text(self, cell: Cell, at: int, width: int) -> Text:
        if isinstance(cell, str):
            return Text(self._padded(cell, at, width))
        return cell + Text(" " * (width - cell.cell_len))


def _width(cell: Cell) -> int:
    return cell.cell_len if isinstance(cell, Text) else max(map(cell_len, cell.split("\n")))


def _room(first: int, at: int, limit: int) -> int:
    """What a text in column `at` may take of a line of `limit` that begins with `first` characters."""
    return max(_LEAST_TEXT, limit - (1 if at == 0 else 1 + first + len(_GAP)))


def _blocks(widths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Columns that stand side by side, by their numbers: the first one in every block."""
    block, used = [0], 1 + widths[0]
    for at in range(1, len(widths)):
        wanted = len(_GAP) + min(widths[at], _room(widths[0], at, limit))
        if used + wanted > limit and len(block) > 1:
            yield block
            block, used = [0], 1 + widths[0]
        block.append(at)
        used += wanted
    yield block


def _folded(cell: str, width: int) -> list[str]:
    if "\n" not in cell and cell_len(cell) <= width:
        return [cell]
    lines = (wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in cell.split("\n"))
    return [piece for line in lines for piece in line or [""]]
