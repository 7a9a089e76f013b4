"""Releases of engines, as tables under `engines/data`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from modelyard.engines.memory import MemoryFacts, memory_facts
from modelyard.hardware import compute_capability
from modelyard.hardware.accelerators import Capability

EngineName = Literal["vllm", "vllm-neuron"]


@dataclass(frozen=True)
class Flag:
    """One command line flag: its JSON type, and the values it is limited to, if any.

    `many`: it takes several values. `only_on`: a switch without a spelling for off.
    """

    name: str
    type: str
    choices: tuple[Any, ...] = ()
    many: bool = False
    only_on: bool = False


@dataclass(frozen=True)
class Release:
    """One release of an engine. `metrics_prefix` stands before the colon of its metrics' names; `tracing`: its image sends
    OpenTelemetry traces."""

    engine: EngineName
    version: str
    image: str
    metrics_prefix: str
    memory: MemoryFacts
    architectures: frozenset[str]
    flags: Mapping[str, Flag]
    owned: Mapping[str, str]
    removed: Mapping[str, str]
    tool_parsers: frozenset[str]
    reasoning_parsers: frozenset[str]
    tracing: bool
    _quantization: Mapping[str, str]

    def least_capability(self, quantization: str) -> Capability | None:
        """The least compute capability for a quantization method; None when the release does not know the method."""
        text = self._quantization.get(quantization)
        return compute_capability(text) if text else None


@cache
def releases() -> tuple[Release, ...]:
    """Every known release, newest last within an engine."""
    tables = sorted(
        (
            json.loads(f.read_text(encoding="utf-8"))
            for f in files("modelyard.engines").joinpath("data").iterdir()
            if f.name.endswith(".json")
        ),
        key=lambda table: (table["engine"], _version_key(table["version"])),
    )
    return tuple(_release(table) for table in tables)


def _release(table: Mapping[str, Any]) -> Release:
    flags: dict[str, Flag] = {}
    for name, row in table["flags"].items():
        flag = Flag(
            name,
            row["type"],
            choices=tuple(row.get("choices", ())),
            many=row.get("many", False),
            only_on=row.get("onlyOn", False),
        )
        for spelling in (name, *row.get("aliases", ())):
            flags[spelling] = flag
    return Release(
        engine=table["engine"],
        version=table["version"],
        image=table["image"],
        metrics_prefix=table["metricsPrefix"],
        memory=memory_facts(table["engine"], table["version"]),
        architectures=frozenset(table["architectures"]),
        flags=MappingProxyType(flags),
        owned=MappingProxyType(table["owned"]),
        removed=MappingProxyType(table["removed"]),
        tool_parsers=frozenset(table["toolParsers"]),
        reasoning_parsers=frozenset(table["reasoningParsers"]),
        tracing=table["tracing"],
        _quantization=MappingProxyType(table["quantizationMinCapability"]),
    )


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def newest_release(engine: EngineName) -> Release:
    """The newest known release of `engine`."""
    return [r for r in releases() if r.engine == engine][-1]


def release(engine: EngineName, version: str | None = None) -> Release | None:
    """The release asked for, the newest for None; None when the release is not known."""
    if version is None:
        return newest_release(engine)
    return next((r for r in releases() if r.engine == engine and r.version == version), None)
