"""Engine releases, from the tables in the engines' folders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from modelyard.engines.memory import memory_facts
from modelyard.engines.parsers import Parsers, family_parsers
from modelyard.engines.registry import USUAL, engine, engines
from modelyard.engines.release import Flag, Release
from modelyard.engines.versions import release_order
from modelyard.reading.table import read_table


@cache
def releases() -> tuple[Release, ...]:
    """Every known release of every engine, per engine oldest first."""
    return tuple(each for name in sorted(engines()) for each in releases_of(name))


@cache
def releases_of(name: str) -> tuple[Release, ...]:
    """Every known release of one engine, oldest first."""
    tables = (read_table(file) for file in engine(name).release_tables)
    # Engines that share a folder keep their releases together.
    own = [table for table in tables if table["engine"] == name]
    return tuple(_release(table) for table in sorted(own, key=lambda table: release_order(table["version"])))


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
        cpu_image=table.get("cpuImage"),
        health=table["health"],
        metrics_path=table["metricsPath"],
        metrics_need_key=table.get("metricsNeedKey", False),
        api_key_env=table.get("apiKeyEnv"),
        drain=table["drain"],
        floor=table.get("securityFloor", {}).get("version"),
        tracing=table.get("tracing", False),
        efa=table.get("efa", False),
        fetches_vocabularies=table.get("fetchesVocabularies", False),
        memory=memory_facts(*table.get("memory", (table["engine"], table["version"]))),
        architectures=frozenset(table["architectures"]),
        flags=MappingProxyType(flags),
        owned=MappingProxyType(table["owned"]),
        removed=MappingProxyType(table["removed"]),
        tool_parsers=frozenset(table["toolParsers"]),
        reasoning_parsers=frozenset(table["reasoningParsers"]),
        tasks=frozenset(table["tasks"]),
        supports=frozenset(table["supports"]),
        _quantization=MappingProxyType(table["quantizationMinCapability"]),
    )


def newest_release(name: str) -> Release:
    """The newest known release of engine `name`."""
    return releases_of(name)[-1]


def release(name: str, version: str | None = None) -> Release | None:
    """The given release, or the newest for None; None if the release is not known."""
    if version is None:
        return newest_release(name)
    return next((r for r in releases_of(name) if r.version == version), None)


def parsers_for(model_id: str, model_type: str, name: str = USUAL) -> Parsers:
    """The parsers of a model family, in the naming of engine `name`."""
    return engine(name).parsers(family_parsers(model_id, model_type))
