"""What somebody wrote, as a message repeats it."""

from __future__ import annotations

from modelyard.secret_values.shapes import HIDDEN, mask

LONGEST = 72
"""Characters of a value that a message repeats."""


def shown(value: object) -> str:
    """`value` for a message: secrets hidden, short, on one line, text in quotes.

    Secrets go first: half a token is no shape any more, and would be printed.
    """
    if not isinstance(value, str):
        return _short(mask(_visible(str(value))))
    quote = '"' if "'" in value and '"' not in value else "'"
    return f"{quote}{_short(_visible(mask(value)))}{quote}"


def _visible(text: str) -> str:
    """Control characters as escapes: they would move the terminal's cursor."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + HIDDEN
