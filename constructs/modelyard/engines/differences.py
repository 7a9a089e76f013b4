"""Changes between two releases of an engine, for upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from modelyard.engines.release import Flag, Release


@dataclass(frozen=True)
class Difference:
    """One change. `fix`: the remedy for a removed flag."""

    change: Literal["added", "removed", "changed"]
    what: Literal["flag", "tool parser", "reasoning parser", "architecture"]
    name: str
    detail: str = ""
    fix: str = ""


def differences(old: Release, new: Release) -> Iterator[Difference]:
    """Flags first, then parsers and architectures, each in alphabetical order."""
    before, after = _own(old), _own(new)
    for name in sorted(before.keys() | after.keys()):
        if name in before and name in after:
            if detail := _changed(before[name], after[name]):
                yield Difference("changed", "flag", name, detail)
        elif name in after:
            yield Difference("added", "flag", name, after[name].type)
        elif name in new.flags:
            yield Difference("changed", "flag", name, f"a spelling of {new.flags[name].name} now")
        else:
            replacement = new.removed.get(name)
            yield Difference(
                "removed", "flag", name, fix=f"use {replacement}" if replacement else "remove it"
            )
    yield from _of_sets("tool parser", old.tool_parsers, new.tool_parsers)
    yield from _of_sets("reasoning parser", old.reasoning_parsers, new.reasoning_parsers)
    yield from _of_sets("architecture", old.architectures, new.architectures)


def _own(release: Release) -> dict[str, Flag]:
    """Flags by canonical name, without aliases."""
    return {name: flag for name, flag in release.flags.items() if name == flag.name}


def _changed(old: Flag, new: Flag) -> str:
    said = []
    if old.type != new.type:
        said.append(f"takes {new.type}, took {old.type}")
    if old.many != new.many:
        said.append("takes several values" if new.many else "takes one value")
    if old.choices and not new.choices:
        said.append("takes any value")
    else:
        gained, lost = (
            ", ".join(sorted(map(str, set(one) - set(other))))
            for one, other in ((new.choices, old.choices), (old.choices, new.choices))
        )
        said += [f"choices gained: {gained}"] if gained and old.choices else []
        said += [f"choices lost: {lost}"] if lost else []
        said += [f"only takes {gained}"] if gained and not old.choices else []
    return "; ".join(said)


def _of_sets(
    what: Literal["tool parser", "reasoning parser", "architecture"],
    old: frozenset[str],
    new: frozenset[str],
) -> Iterator[Difference]:
    for name in sorted(old ^ new):
        yield Difference("added" if name in new else "removed", what, name)
