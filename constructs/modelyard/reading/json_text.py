"""Parser for untrusted JSON: limited depth, number of values and length of numbers, and only printable
text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

MOST_VALUES = 200_000
"""Maximum values per document. A config.json of 2 MiB has 50,000; each value takes a few hundred bytes of
memory."""
MOST_DEPTH = 64
"""Maximum nesting of objects and lists. Python's recursion limit would break copying and printing at a few
hundred."""
MOST_DIGITS = 40
"""Maximum digits of an integer. Python parses integers with thousands of digits but refuses to print them."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """A text that is not JSON, or exceeds a limit. The message never quotes the text."""


def parse_json(
    text: str | bytes, *, repeated_keys: bool = False, halves: bool = False, most: int = MOST_VALUES
) -> Any:
    """Parse `text`. NaN and Infinity are numbers, as in published config.json files.

    `repeated_keys`: accept duplicate keys, of which the last counts, as in libraries that read config.json.
    `halves`: accept unpaired surrogates; the caller must write them escaped. `most`: maximum values.

    Raises:
        NotJson: not JSON, or beyond a limit.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise NotJson(f"byte {problem.start + 1} is no UTF-8 text") from None
    # A cheap upper bound: it also counts commas inside strings.
    if text.count(",") + text.count("[") + text.count("{") > most:
        raise NotJson(f"it has more than {most:,} values")
    try:
        found = json.loads(text, parse_int=_whole, object_pairs_hook=None if repeated_keys else _once_each)
    except RecursionError:
        raise NotJson(_TOO_DEEP) from None
    except json.JSONDecodeError as problem:
        raise NotJson(f"{problem.msg}: line {problem.lineno} column {problem.colno}") from None
    if text.count("[") + text.count("{") > MOST_DEPTH:
        _refuse_depth(found)
    if not halves and _HALF.search(text):
        _refuse_halves(found)
    return found


_TOO_DEEP = f"it has more than {MOST_DEPTH} objects and lists within one another"


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotJson(f"a whole number has {len(digits):,} digits; {MOST_DIGITS} are the most")
    return int(digits)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotJson(f"an object has the key {twice[:60]!r} twice")
    return found


def _refuse_depth(document: Any) -> None:
    level = [document]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for outer in level for inner in _parts(outer)]
    if level:
        raise NotJson(_TOO_DEEP)


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _refuse_halves(document: Any) -> None:
    """Reject unpaired surrogates, which cannot be printed or written."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotJson("a text has half of a surrogate pair") from None
