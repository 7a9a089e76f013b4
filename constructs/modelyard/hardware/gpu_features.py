"""GPU features by compute capability: number formats, links, and behaviour of engine kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from modelyard.hardware.tables import yaml_table

Capability = tuple[int, int]
Feature = Literal["bfloat16", "fp8-cache", "large-collectives", "nvlink"]


@dataclass(frozen=True)
class Rule:
    """Which compute capabilities have a feature: all from `since` on, only those in `only`, or all except
    those in `excepted`. Entries of the latter two are prefixes: `(10,)` matches every 10.x."""

    since: Capability | None = None
    only: tuple[tuple[int, ...], ...] = ()
    excepted: tuple[tuple[int, ...], ...] = ()

    def holds(self, capability: Capability) -> bool:
        if self.since is not None:
            return capability >= self.since
        if self.only:
            return any(capability[: len(prefix)] == prefix for prefix in self.only)
        return not any(capability[: len(prefix)] == prefix for prefix in self.excepted)


def compute_capability(text: str) -> Capability:
    """`8.9` as (8, 9)."""
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def feature_rules() -> Mapping[str, Rule]:
    """The rule of every feature."""
    return MappingProxyType(
        {name: capability_rule(row) for name, row in yaml_table("gpu_features.yaml")["features"].items()}
    )


def capability_rule(row: Mapping[str, Any]) -> Rule:
    """The rule that a table's `row` states with `since`, `only` or `except`; without them it always holds."""
    return Rule(
        since=compute_capability(row["since"]) if "since" in row else None,
        only=_prefixes(row.get("only", [])),
        excepted=_prefixes(row.get("except", [])),
    )


def features_of(capability: Capability | None) -> frozenset[str]:
    """Features of a GPU of `capability`; empty if it is unknown or not a GPU."""
    if capability is None:
        return frozenset()
    return frozenset(name for name, rule in feature_rules().items() if rule.holds(capability))


def _prefixes(texts: list[str]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(part) for part in text.split(".")) for text in texts)
