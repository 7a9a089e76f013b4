"""Versions of engines, in their order."""

from __future__ import annotations

import re
from typing import Final

from packaging.version import Version

_NUMBERS: Final = re.compile(r"v?(?P<numbers>[0-9]+(\.[0-9]+)*)")
_OLDEST: Final = Version("0.dev0")


def release_order(version: str) -> Version:
    """A version of a release table: `0.33.0`, `26.07`, or a build of llama.cpp such as `b11434`."""
    return Version(version.removeprefix("b"))


def stated_order(version: str) -> Version:
    """A version as people state it, by its numbers alone: 0.17.1rc1.dev88 counts as 0.17.1.

    A text that begins with no number counts as older than all.
    """
    found = _NUMBERS.match(version)
    return Version(found["numbers"]) if found else _OLDEST
