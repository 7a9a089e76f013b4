"""Credentials by known shapes: `data/shapes.json`."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

_PAGE = 1 << 16  # characters: longer texts are not cached
_WORDS = 64  # characters: most values are shorter
_SHORTEST = 8  # characters: the shortest URL with user and password
HIDDEN = "…"
"""Replacement for a secret in messages."""


_MASKED = re.compile(rf"[\w-]{{0,12}}{HIDDEN}|[*.]+")  # already masked text


@dataclass(frozen=True)
class Shape:
    """The shape of one kind of credential. Every matching text contains one of `anchors`."""

    what: str
    anchors: tuple[str, ...]
    pattern: str
    public: int

    @property
    def regex(self) -> re.Pattern[str]:
        return _compiled(self.pattern)


@dataclass(frozen=True, order=True)
class Sighting:
    """A secret in a text, from `start` to `end`; `shown`: its masked form for messages."""

    start: int
    end: int
    what: str
    shown: str = HIDDEN


@cache
def shapes() -> tuple[Shape, ...]:
    """All shapes in the table."""
    table = json.loads(files(__package__).joinpath("data/shapes.json").read_text(encoding="utf-8"))
    return tuple(
        Shape(row["what"], tuple(row["anchors"]), row["pattern"], row["public"]) for row in table["shapes"]
    )


@cache
def _anchors() -> tuple[tuple[str, Shape], ...]:
    return tuple((anchor, shape) for shape in shapes() for anchor in shape.anchors)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when a text contains the anchor, so clean files need no compilation."""
    return re.compile(pattern)


@cache
def _any_anchor() -> re.Pattern[str]:
    """Matches any anchor in one pass. Grouping anchors by first character makes it four times as fast."""
    alike: dict[str, list[str]] = {}
    for anchor in dict.fromkeys(anchor for anchor, _ in _anchors()):
        alike.setdefault(anchor[0], []).append(re.escape(anchor[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in alike.items()))


def with_anchors(texts: Iterable[str]) -> set[str]:
    """The `texts` in which `sightings` may find something.

    All texts are searched for anchors together first, so an anchor without a match costs nothing per text. Of
    two overlapping anchors only one is matched, which suffices for the text that contains both.
    """
    unique = {text for text in texts if len(text) >= _SHORTEST}
    present = set(_any_anchor().findall("\n".join(unique)))
    return {text for text in unique if any(anchor in text for anchor in present)}


def sightings(text: str) -> tuple[Sighting, ...]:
    """Every credential of a known shape in `text`, in order, without overlaps."""
    return _remembered(text) if len(text) < _PAGE else _found(text)


@lru_cache(maxsize=1 << 16)  # the objects of a thousand models share few texts
def _remembered(text: str) -> tuple[Sighting, ...]:
    return _found(text)


def _found(text: str) -> tuple[Sighting, ...]:
    if len(text) < _SHORTEST or (len(text) < _WORDS and not _any_anchor().search(text)):
        return ()
    held = dict.fromkeys(shape for anchor, shape in _anchors() if anchor in text)
    found = [sighting for shape in held for sighting in _of(shape, text)]
    if not found:
        return ()
    apart: list[Sighting] = []
    for sighting in sorted(found):
        if not apart or apart[-1].end <= sighting.start:
            apart.append(sighting)
            continue
        # Overlapping secrets are masked as one: a token in a URL together with the whole password.
        last = apart[-1]
        longer = max(last, sighting, key=lambda each: each.end - each.start)
        end = max(last.end, sighting.end)
        whole = (longer.start, longer.end) == (last.start, end)
        apart[-1] = longer if whole else Sighting(last.start, end, longer.what)
    return tuple(apart)


def _of(shape: Shape, text: str) -> Iterator[Sighting]:
    for match in shape.regex.finditer(text):
        groups = match.groupdict()
        start, end = match.span()
        if groups.get("secret") is not None:
            start, end = match.span("secret")
        elif (pair := groups.get("userpass")) is not None:
            if not _user_and_password(pair):
                continue
            start, end = match.span("userpass")
        if not _MASKED.fullmatch(text, start, end):
            yield Sighting(start, end, shape.what, text[start : start + shape.public] + HIDDEN)


def _user_and_password(encoded: str) -> bool:
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in text and text.isprintable()


def mask(text: str) -> str:
    """`text` with credentials masked."""
    for sighting in reversed(sightings(text)):
        text = text[: sighting.start] + sighting.shown + text[sighting.end :]
    return text
