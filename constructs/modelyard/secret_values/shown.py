"""User values, safe for messages."""

from __future__ import annotations

from modelyard.secret_values.shapes import HIDDEN, mask

LONGEST = 72
"""Maximum characters of a value in a message."""


def shown(value: object) -> str:
    """`value` for a message: secrets masked, short, on one line, text in quotes.

    Secrets are masked before shortening: a truncated token no longer matches its shape and would be printed.
    """
    if not isinstance(value, str):
        return _short(mask(_visible(str(value))))
    quote = '"' if "'" in value and '"' not in value else "'"
    return f"{quote}{_short(_visible(mask(value)))}{quote}"


def _visible(text: str) -> str:
    """Escape control characters, which would move the terminal's cursor."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + HIDDEN
