"""The memory of one accelerator as a bar: what the engine takes, and what remains for requests."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from modelyard.hardware import Memory
from modelyard.memory.ledger import MemoryLedger

_BLOCK = "█"
_LEAST, _MOST = 24, 100


@dataclass(frozen=True)
class Part:
    """One part of a ledger: `plain` is its character without colours, `key` its JSON key."""

    name: str
    key: str
    plain: str
    colour: str
    amount: Memory


def ledger_parts(ledger: MemoryLedger) -> tuple[Part, ...]:
    """Parts whose sizes add up to the accelerator's memory exactly. The KV cache is negative if memory is
    short."""
    return (
        Part("weights", "weights", "#", "blue", ledger.weights),
        Part("adapters", "adapters", "a", "cyan", ledger.adapters),
        Part("activation", "activation", "=", "magenta", ledger.activation),
        Part("non-torch", "nonTorch", "~", "yellow", ledger.non_torch),
        Part("CUDA graphs", "cudaGraphs", "%", "bright_red", ledger.graphs_in_budget),
        Part("KV cache", "kvCache", ".", "green", ledger.kv_cache),
        Part("outside the budget", "outside", "-", "bright_black", ledger.outside),
    )


def ledger_json(ledger: MemoryLedger) -> dict[str, int]:
    """Bytes per part, and their sum `total`."""
    return {
        **{part.key: part.amount.in_bytes for part in ledger_parts(ledger)},
        "total": ledger.total.in_bytes,
    }


def terminal_bar_width(beside: int = 0) -> int:
    """Width of a bar in cells, with `beside` other characters on its line."""
    return max(_LEAST, min(_MOST, shutil.get_terminal_size((100, 24)).columns - beside))


def ledger_bar(ledger: MemoryLedger, width: int, *, colours: bool) -> Text:
    """A bar of `width` cells in proportion; every nonzero part gets at least one cell. Without memory for a
    KV cache the bar shows what would have to fit."""
    parts = [part for part in ledger_parts(ledger) if part.amount.in_bytes > 0]
    bar = Text()
    for part, cells in zip(parts, _shares([part.amount.in_bytes for part in parts], width), strict=True):
        bar.append((_BLOCK if colours else part.plain) * cells, style=part.colour if colours else "")
    return bar


def legend(ledgers: Iterable[MemoryLedger], *, colours: bool) -> Text:
    """The legend of the bars of `ledgers`, in one line."""
    parts = {part.key: part for ledger in ledgers for part in ledger_parts(ledger) if part.amount.in_bytes}
    line = Text()
    for part in parts.values():
        line.append("  " if line else "")
        line.append(_BLOCK if colours else part.plain, style=part.colour if colours else "")
        line.append(f" {part.name}")
    return line


def _shares(amounts: Sequence[int], width: int) -> list[int]:
    """`width` in proportion to `amounts` (largest remainders), with at least one each."""
    total, free = sum(amounts), width - len(amounts)
    if free < 0 or not total:
        return [1] * min(len(amounts), width) + [0] * max(0, len(amounts) - width)
    exact = [amount * free / total for amount in amounts]
    cells = [int(share) for share in exact]
    by_rest = sorted(range(len(amounts)), key=lambda i: exact[i] - cells[i], reverse=True)
    for i in by_rest[: free - sum(cells)]:
        cells[i] += 1
    return [1 + each for each in cells]


def has_colours(out: Console) -> bool:
    """Whether `out` writes colours."""
    return out.color_system is not None


def ledger_lines(ledgers: Iterable[tuple[str, MemoryLedger]], *, colours: bool) -> Iterator[Text]:
    """One bar per model after its name, then the legend."""
    rows = list(ledgers)
    widest = max((len(name) for name, _ in rows), default=0)
    for name, ledger in rows:
        line = Text(f"{name:<{widest}}  ")
        line.append_text(ledger_bar(ledger, terminal_bar_width(beside=widest + 12), colours=colours))
        line.append(f" {ledger.total.in_gib:5.1f} GiB")
        yield line
    yield legend([ledger for _, ledger in rows], colours=colours)
