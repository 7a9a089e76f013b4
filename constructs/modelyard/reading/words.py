"""Words of others in messages: none is repeated at full length, and only words can be misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_WORD = 64


def short(text: str, most: int = 60) -> str:
    """`text` in at most `most` characters that a terminal shows as they are."""
    start = text[: most + 1]
    if not start.isprintable():
        start = repr(start)[1:-1]
    return start if len(start) <= most and len(text) <= most else f"{start[: most - 3]}..."


def closest(word: str, known: Iterable[str], *, least: float = 0.6, count: int = 1) -> list[str]:
    """Those of `known` that `word` may have been meant to be, the nearest first; `least` is a similarity up
    to 1.

    Comparing takes the product of the lengths: what is longer than any name is like none.
    """
    if len(word) > _LONGEST_WORD:
        return []
    return difflib.get_close_matches(word, known, n=count, cutoff=least)
