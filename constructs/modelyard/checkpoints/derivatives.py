"""What the name of a repository tells: the checkpoint that it was made from, and its number format.

A name is a hint for a message, never a fact: nothing is computed from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from modelyard.checkpoints.table import architectures

# The marks that quantizers put into names, and the bits per weight that each stands for (0: the mark does not
# say). The first that is found counts.
_MARKS: tuple[tuple[str, str, int], ...] = (
    ("gguf", r"gguf", 0),
    ("bitsandbytes", r"bnb-4bit|bnb-8bit|bnb", 4),
    ("awq", r"awq", 4),
    ("gptq", r"gptq", 4),
    ("nvfp4", r"nvfp4a16|nvfp4|fp4", 4),
    ("mxfp4", r"mxfp4", 4),
    ("int4", r"w4a16|w4a8|int4|4bit", 4),
    ("fp8", r"fp8|mxfp8|float8", 8),
    ("int8", r"w8a8|w8a16|int8|8bit", 8),
)
_EIGHT_BITS = re.compile(r"(?<![a-z0-9])(?:int8|8bit|8-bit|w8a16)(?![a-z0-9])")
# Ends of names that are left out by those who fine-tune.
_ENDS = re.compile(r"-(?:instruct|chat|it|hf)$")


@dataclass(frozen=True)
class NamedFormat:
    """A number format as a name has it. `kind`: the method or format; `bits`: per weight, 0 where the name
    does not say."""

    kind: str
    written: str
    bits: int


def format_in(repository: str) -> NamedFormat | None:
    """The number format in the name of `repository`; None for a name without one."""
    name = _last(repository)
    for kind, pattern, bits in _MARKS:
        if found := re.search(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", name):
            start = len(repository) - len(name) + found.start()
            written = repository[start : start + len(found.group())]
            eight = kind in ("bitsandbytes", "awq", "gptq") and _EIGHT_BITS.search(name)
            return NamedFormat(kind, written, 8 if eight else bits)
    return None


def base_of(repository: str) -> str | None:
    """The known checkpoint whose name stands in that of `repository`, the longest such name first."""
    name = _last(repository)
    found = [(key, known) for key, known in _names() if key in name and _whole(key, name)]
    return max(found, key=lambda pair: (len(pair[0]), -len(pair[1])), default=("", None))[1]


def in_the_same_format(base: str, wanted: NamedFormat) -> str | None:
    """A known checkpoint of `base` in the format `wanted`."""
    for known in architectures().repositories():
        named = format_in(known)
        if named and (named.kind, named.bits) == (wanted.kind, wanted.bits) and base_of(known) == base:
            return known
    return None


def _last(repository: str) -> str:
    return repository.rpartition("/")[2].lower()


@cache
def _names() -> tuple[tuple[str, str], ...]:
    """Names by which the known checkpoints are found, without those that are quantized derivatives."""
    found: dict[str, str] = {}
    for known in architectures().repositories():
        name = _last(known)
        if format_in(known) is None:
            short = name.removeprefix("meta-")
            for key in (name, short, _ENDS.sub("", short)):
                nearest = found.setdefault(key, known)
                found[key] = min(nearest, known, key=lambda one: (_last(one) != key, len(one), one))
    return tuple(found.items())


def _whole(key: str, name: str) -> bool:
    """Whether `key` stands in `name` as whole words: `qwen3-8b` not in `qwen3-8b.5`."""
    return re.search(rf"(?<![a-z0-9.]){re.escape(key)}(?![a-z0-9]|\.\d)", name) is not None
