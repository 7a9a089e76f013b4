"""User words in messages: shortened, and with spelling suggestions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WORD = 64


def short(text: str, most: int = 60) -> str:
    """`text` in at most `most` printable characters."""
    start = text[: most + 1]
    if not start.isprintable():
        start = repr(start)[1:-1]
    return start if len(start) <= most and len(text) <= most else f"{start[: most - 3]}..."


def closest(word: str, known: Iterable[str], *, least: float = 0.6, count: int = 1) -> list[str]:
    """Spelling suggestions for `word` from `known`, nearest first; `least`: minimum similarity, up to 1.

    Comparison time is the product of the lengths, so overlong words get no suggestion.
    """
    if len(word) > _LONGEST_WORD:
        return []
    return difflib.get_close_matches(word, known, n=count, cutoff=least)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'? ` in front of a fix, or nothing where no name is near."""
    near = closest(word, known)
    return f"did you mean '{near[0]}'? " if near else ""
