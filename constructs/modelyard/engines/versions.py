"""Ordering of engine versions."""

from __future__ import annotations

import re
from typing import Final

from packaging.version import Version

_NUMBERS: Final = re.compile(r"v?(?P<numbers>[0-9]+(\.[0-9]+)*)")
_OLDEST: Final = Version("0.dev0")


def release_order(version: str) -> Version:
    """Sort key for a version in a release table: `0.33.0`, `26.07`, or a llama.cpp build such as `b11434`."""
    return Version(version.removeprefix("b"))


def stated_order(version: str) -> Version:
    """Sort key for a version as users write it, by its numbers only: 0.17.1rc1.dev88 counts as 0.17.1.

    Text without a leading number sorts before all versions.
    """
    found = _NUMBERS.match(version)
    return Version(found["numbers"]) if found else _OLDEST
