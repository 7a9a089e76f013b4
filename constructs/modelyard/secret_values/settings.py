"""`NAME=VALUE` in running text: comments, commands, connection strings, JSON in a string."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelyard.secret_values.names import is_harmless, names_a_secret
from modelyard.secret_values.shapes import HIDDEN, Sighting

_SETTING = re.compile(
    r"(?P<name>(?<![\w.-])-{0,2}[A-Za-z_][\w.-]{1,60})[\"']?"
    r"(?P<sign>\s?=\s?|:\s?|\s+is\s+|(?<=[\w\"'])[ \t]+(?=\S))"
    r"(?:(?P<quote>[\"'])(?P<quoted>(?:(?!(?P=quote)).){3,200})(?P=quote)|(?P<plain>[^\s\"',;&|{}()\[\]<>]{3,1024}))"
)
_WORD = re.compile(r"[A-Za-z]+(?:[-_/.:][A-Za-z]+)*[.:!?]?")
_KEBAB = re.compile(r"[a-z0-9]+(?:[-/][a-z0-9]+)*-[a-z]+")
_ARN = re.compile(r"\barn:[\w-]+:\S+")
# Keys in Modelyard's files whose values are names of secrets.
_LOGICAL = frozenset({"apiKey", "auth", "certificate", "masterKey", "secretKey"})
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9./]*[a-z0-9])?")


def settings(text: str) -> Iterator[Sighting]:
    """Values in `text` whose names mark them as secrets.

    After a colon there may be prose, so a plain word there is no secret; a space counts only after a command
    line option.
    """
    text = _ARN.sub(lambda match: " " * len(match[0]), text)
    start = 0
    while match := _SETTING.search(text, start):
        start = match.start("sign") + 1
        name, sign = match["name"], match["sign"].strip()
        value = match["quoted"] or match["plain"]
        if names_a_secret(name) != "certain" or HIDDEN in value or is_harmless(name, value):
            continue
        if not sign and not name.startswith("--"):
            continue
        if sign != "=" and not match["quote"] and not name.isupper() and _WORD.fullmatch(value):
            continue
        if sign == ":" and not match["quote"] and not name.isupper() and _KEBAB.fullmatch(value):
            continue
        if name in _LOGICAL and _LABEL.fullmatch(value):
            continue
        where = match.span("quoted") if match["quoted"] else match.span("plain")
        start = where[1]
        yield Sighting(*where, f"the value of {name.strip('-')}", HIDDEN)
