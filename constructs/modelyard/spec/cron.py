"""Cron expressions in the syntax of robfig/cron v3, the parser of Kubernetes' CronJobs and KEDA's cron
scaler.

Other cron libraries accept more (day 7 for Sunday, `L`, `#`, seconds), which these two reject only in the
cluster. `@daily` and the like are left out: CronJobs accept them, KEDA does not.
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from modelyard.secret_values import shown


@dataclass(frozen=True)
class _Part:
    """One of the five fields: its name, its range, and its names for numbers."""

    name: str
    least: int
    most: int
    words: Mapping[str, int]


def _numbered(words: list[str], start: int) -> dict[str, int]:
    return {word.lower(): number for number, word in enumerate(words, start)}


_MONTHS = _numbered(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)
_DAYS = _numbered(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], 0)
_PARTS = (
    _Part("minute", 0, 59, {}),
    _Part("hour", 0, 23, {}),
    _Part("day of month", 1, 31, {}),
    _Part("month", 1, 12, _MONTHS),
    _Part("day of week", 0, 6, _DAYS),
)
_LEAP_YEAR = 2028


def check_cron(text: str) -> str:
    """`text`, if it is a valid expression that matches at some time.

    Raises:
        ValueError: Kubernetes or KEDA would reject it, or it names a day that no month has.
    """
    words = text.split()
    if len(words) != len(_PARTS):
        raise ValueError(f"must have five fields, minute hour day month weekday, has {len(words)}")
    numbers = [_numbers(word, part) for word, part in zip(words, _PARTS, strict=True)]
    days, months = numbers[2], numbers[3]
    # If a weekday is given too, a match of either suffices.
    if _is_any(words[4]) and not _is_any(words[2]):
        longest = max(calendar.monthrange(_LEAP_YEAR, month)[1] for month in months)
        if min(days) > longest:
            raise ValueError(f"never comes true: no month that it names has a day {min(days)}")
    return text


def _is_any(word: str) -> bool:
    return any(part.removesuffix("/1") in ("*", "?") for part in word.split(","))


def _numbers(word: str, part: _Part) -> set[int]:
    found: set[int] = set()
    for piece in word.split(","):
        if piece:  # robfig/cron skips empty list items
            found |= _range(piece, part)
    if not found:
        raise ValueError(f"{part.name} names nothing")
    return found


def _range(piece: str, part: _Part) -> set[int]:
    bounds, *steps = piece.split("/")
    low, *high = bounds.split("-")
    if len(steps) > 1 or len(high) > 1:
        raise ValueError(f"{part.name} {shown(piece)} is neither a number nor a range such as 1-5 or */10")
    if low in ("*", "?"):
        first, last = part.least, part.most
    else:
        first = _number(low, part)
        # `3/10` means 3, 13, … up to the maximum.
        last = _number(high[0], part) if high else part.most if steps else first
    if first > last:
        raise ValueError(f"{part.name} {shown(piece)} ends before it begins")
    step = _whole(steps[0], part) if steps else 1
    if step == 0:
        raise ValueError(f"{part.name} {shown(piece)} has a step of 0")
    return set(range(first, last + 1, step))


def _number(text: str, part: _Part) -> int:
    number = part.words.get(text.lower())
    if number is None:
        number = _whole(text, part)
    if not part.least <= number <= part.most:
        raise ValueError(f"{part.name} {number} is not within {part.least} to {part.most}")
    return number


def _whole(text: str, part: _Part) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        known = f" or one of {', '.join(part.words)}" if part.words else ""
        raise ValueError(f"{part.name} {shown(text)} is no number{known}")
    return int(text)


Cron = Annotated[str, AfterValidator(check_cron), Field(pattern=r"^\s*(\S+\s+){4}\S+\s*$")]
"""A cron expression of five fields."""
