"""Module names as listed in checkpoints: tens of thousands of plain names, and patterns with bounded match
time.

A regular expression of 20 characters can take years on a name of 40. So the cost of a pattern is estimated
before use, and the patterns of one list share a budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import comb

_LONGEST_NAME = 48
"""Approximate maximum characters of a module name."""
MOST_STEPS = 250_000
"""Maximum steps of the regular-expression engine for one name and all patterns of a list: a millisecond or
two."""
_LONGEST_PATTERN = 300


class WrongPattern(ValueError):
    """A text that is not a regular expression, or one that could run almost forever."""


@dataclass(frozen=True)
class ModulePatterns:
    """Patterns by their position in a list. Plain names also match everything below them."""

    exact: dict[str, int]
    parts: dict[str, int]
    shaped: tuple[tuple[int, re.Pattern[str]], ...]

    def first(self, module: str) -> int | None:
        """Position of the first pattern that matches `module`."""
        parts = module.split(".")
        above = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
        found = [self.exact[name] for name in above if name in self.exact]
        found += [self.parts[part] for part in parts if part in self.parts]
        best = min(found, default=None)
        for place, pattern in self.shaped:
            if best is not None and place > best:
                break
            if pattern.search(module):
                return place
        return best


def module_patterns(patterns: Iterable[str]) -> ModulePatterns:
    """Compile plain names and patterns: `re:`, `*`, or a bare part of a name.

    Raises:
        WrongPattern: a pattern cannot be used.
    """
    exact: dict[str, int] = {}
    parts: dict[str, int] = {}
    shaped: list[tuple[int, re.Pattern[str]]] = []
    budget = MOST_STEPS
    for place, pattern in enumerate(patterns):
        if pattern.startswith("re:"):
            body = pattern[3:].replace("^", "").replace("model\\.", "").replace("model.", "")
            budget -= _steps(body, pattern, anchored=False)
        elif "*" in pattern or "?" in pattern:
            name = re.escape(_canonical(pattern)).replace(r"\*", ".*").replace(r"\?", ".")
            body = rf"^{name}(\.|$)"
            budget -= _steps(name, pattern, anchored=True)
        elif "." not in pattern:
            parts.setdefault(pattern, place)
            continue
        else:
            exact.setdefault(_canonical(pattern), place)
            continue
        if budget < 0:
            raise WrongPattern(f"patterns up to {_shown(pattern)} that could take too long; list plain names")
        shaped.append((place, _compiled(body, pattern)))
    return ModulePatterns(exact, parts, tuple(shaped))


@lru_cache(maxsize=65536)
def _canonical(name: str) -> str:
    """Drop the prefix of the wrapper around the text model, which differs by model."""
    for root in ("layers.", "lm_head", "embed_tokens"):
        found = name.find(root)
        if found >= 0:
            return name[found:]
    return name


_NUMBER = re.compile(r"(?:\\d|\[0-9\])[+*]")  # the number of a layer or expert: it ends with its digits
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_GROUP_KIND = re.compile(r"\(\?(?:[aiLmsux-]*[:)]|[=!]|<[=!]|P?<\w+>|P[=>])?")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_ENDS = re.compile(r"^(?:\.\*)+|(?:\.\*)+$")  # `search` matches anywhere


def _steps(body: str, pattern: str, *, anchored: bool) -> int:
    """Upper bound of regex steps for one name: start positions, repeats and alternatives."""
    if len(body) > _LONGEST_PATTERN:
        raise WrongPattern(f"pattern {_shown(pattern)} of more than {_LONGEST_PATTERN} characters")
    text = _ESCAPED.sub("x", _NUMBER.sub("x", body))
    if _REPEATED_GROUP.search(text):
        raise WrongPattern(f"pattern {_shown(pattern)}, which repeats a group and could take for ever")
    text = _GROUP_KIND.sub("(", text if anchored else _ENDS.sub("", text))
    repeats = len(re.findall(r"[*+?{]", text)) + (not anchored)
    groups, branches = text.count("(") + 1, text.count("|")
    alternatives = (1 + branches / groups) ** groups
    # Capped: a hundred repeats would give an integer of a hundred digits.
    return int(min(comb(_LONGEST_NAME + repeats, min(repeats, 8)), 1e12) * min(alternatives, 1e12))


def _compiled(body: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(body)
    except (re.error, OverflowError, RecursionError):
        raise WrongPattern(f"a pattern that is no regular expression: {_shown(pattern)}") from None


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else f"{pattern[:57]}...")
