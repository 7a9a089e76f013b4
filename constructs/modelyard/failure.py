"""The base class of errors that end a command; the text says what is wrong and what to do."""

from __future__ import annotations


class Failure(Exception):
    """The work cannot be done; commands print the text and end with exit code 1."""
