"""Checks the user's engine flags against the release's flag table before anything is deployed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelyard.engines.release import Flag, Release
from modelyard.reading import closest
from modelyard.secret_values import shown

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "object": (dict, list),
    "any": (object,),
}


@dataclass(frozen=True)
class FlagProblem:
    """A problem of the flag `name`."""

    code: str
    name: str
    message: str
    fix: str


MOST_PROBLEMS = 100
"""Maximum flag problems listed per model; an engine has about three hundred flags."""


def check_flags(args: Mapping[str, Any], release: Release) -> list[FlagProblem]:
    """Every problem of `args`: flags that are unknown, removed or owned by the plan, of the wrong type, or
    not among the choices.

    Stops after `MOST_PROBLEMS`: a spelling suggestion takes a millisecond per flag.
    """
    problems: list[FlagProblem] = []
    for name, value in args.items():
        if len(problems) == MOST_PROBLEMS:
            more = FlagProblem(
                "VLLM001", name, "further flags are not checked", "correct those that are listed"
            )
            return [*problems, more]
        if problem := _check(name, value, release):
            problems.append(problem)
    return problems


def _check(name: str, value: Any, release: Release) -> FlagProblem | None:
    where = f"{release.engine} {release.version}"
    if not release.flags:
        return FlagProblem(
            "VLLM001", name, f"flags of {where} cannot be checked: its table is not known", "remove the flag"
        )
    base = name.removeprefix("no-") if name.startswith("no-") else name.partition(".")[0]
    flag = release.flags.get(base)
    canonical = flag.name if flag else base  # an alias of an owned flag is owned too
    if canonical in release.owned:
        field = release.owned[canonical]
        fix = f"set {field} instead" if field else "remove it; Modelyard sets it"
        return FlagProblem("VLLM002", name, f"flag --{name} is set by the plan", fix)
    if base in release.removed:
        new = release.removed[base]
        fix = f"use {new} instead" if new else "remove it; nothing replaces it"
        return FlagProblem("VLLM001", name, f"flag --{name} does not exist in {where}", fix)
    if flag is None:
        close = closest(base, release.flags, least=0.7)
        fix = f"did you mean {close[0]}?" if close else "remove it, or choose a release that has it"
        return FlagProblem("VLLM001", name, f"flag --{name} does not exist in {where}", fix)
    return _check_value(name, value, flag)


def _check_value(name: str, value: Any, flag: Flag) -> FlagProblem | None:
    if value is False and flag.only_on:
        return FlagProblem("VLLM001", name, f"flag --{name} cannot be switched off", "leave it out")
    if value is False and name != flag.name:
        return FlagProblem(
            "VLLM001", name, f"flag --{name} is a negation already", f"write {flag.name}: true"
        )
    if "." in name:  # a dotted part of a JSON flag: the engine checks its type
        return None
    values = value if flag.many and isinstance(value, list) else [value]
    for one in values:
        right = isinstance(one, _PYTHON_TYPES[flag.type]) and (
            flag.type == "boolean" or not isinstance(one, bool)
        )
        if not right:
            return FlagProblem(
                "VLLM001",
                name,
                f"flag --{name} takes a value of type {flag.type}, got {shown(one)}",
                "correct the value",
            )
        if flag.choices and one not in flag.choices:
            allowed = ", ".join(str(choice) for choice in flag.choices)
            return FlagProblem(
                "VLLM001", name, f"flag --{name} does not take {shown(one)}", f"use one of {allowed}"
            )
    return None
