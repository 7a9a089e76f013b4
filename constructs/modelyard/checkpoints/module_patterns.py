"""Names of modules as checkpoints list them: plain ones by the ten thousand, and patterns that cannot hold
anybody up.

A regular expression of 20 characters can take years over a name of 40. What a pattern can cost is therefore
estimated before it is used, and the patterns of one list share a budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import comb

_LONGEST_NAME = 48
"""Characters of a module's name, about."""
MOST_STEPS = 250_000
"""Of the regular-expression engine for one name and all patterns of a list, at the worst: a millisecond or
two."""
_LONGEST_PATTERN = 300


class WrongPattern(ValueError):
    """A text that is no regular expression, or one that could take for ever."""


@dataclass(frozen=True)
class ModulePatterns:
    """Patterns of a list by their place in it. Plain names stand for what lies below them as well."""

    exact: dict[str, int]
    parts: dict[str, int]
    shaped: tuple[tuple[int, re.Pattern[str]], ...]

    def first(self, module: str) -> int | None:
        """Place of the first pattern that `module` matches."""
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
    """Plain names, and the patterns: `re:`, `*`, or a bare part of a name.

    Raises:
        WrongPattern: one of them cannot be used.
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
    """Module names differ by what wraps the text model: only what follows the wrapper counts."""
    for root in ("layers.", "lm_head", "embed_tokens"):
        found = name.find(root)
        if found >= 0:
            return name[found:]
    return name


_NUMBER = re.compile(r"(?:\\d|\[0-9\])[+*]")  # of a layer or an expert: it ends where its digits do
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_GROUP_KIND = re.compile(r"\(\?(?:[aiLmsux-]*[:)]|[=!]|<[=!]|P?<\w+>|P[=>])?")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_ENDS = re.compile(r"^(?:\.\*)+|(?:\.\*)+$")  # searching finds what stands anywhere


def _steps(body: str, pattern: str, *, anchored: bool) -> int:
    """An upper bound of what the engine tries for one name: places to begin, repeats and alternatives."""
    if len(body) > _LONGEST_PATTERN:
        raise WrongPattern(f"pattern {_shown(pattern)} of more than {_LONGEST_PATTERN} characters")
    text = _ESCAPED.sub("x", _NUMBER.sub("x", body))
    if _REPEATED_GROUP.search(text):
        raise WrongPattern(f"pattern {_shown(pattern)}, which repeats a group and could take for ever")
    text = _GROUP_KIND.sub("(", text if anchored else _ENDS.sub("", text))
    repeats = len(re.findall(r"[*+?{]", text)) + (not anchored)
    groups, branches = text.count("(") + 1, text.count("|")
    alternatives = (1 + branches / groups) ** groups
    # Capped: a hundred repeats are an integer of a hundred digits.
    return int(min(comb(_LONGEST_NAME + repeats, min(repeats, 8)), 1e12) * min(alternatives, 1e12))


def _compiled(body: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(body)
    except (re.error, OverflowError, RecursionError):
        raise WrongPattern(f"a pattern that is no regular expression: {_shown(pattern)}") from None


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else f"{pattern[:57]}...")
