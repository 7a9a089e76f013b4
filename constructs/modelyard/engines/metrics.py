"""Metrics on the /metrics page of each engine and exporter, and engine signals: dated tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Literal

from modelyard.engines.registry import engine as engine_called
from modelyard.engines.registry import engines
from modelyard.engines.signals import Signals
from modelyard.engines.versions import release_order
from modelyard.reading.table import read_table

MetricType = Literal["counter", "gauge", "histogram", "summary"]

EXPORTERS = (
    "dcgm-exporter",
    "neuron-monitor",
    "kube-state-metrics",
    "kubelet",
    "karpenter",
    "keda",
    "flux",
    "external-secrets",
    "litellm",
    "prometheus",
)
"""Exporters that are scraped besides the engines."""


@dataclass(frozen=True)
class Metric:
    """A metric family. `values`: the possible values of some labels; `bounds`: upper bounds of a histogram,
    as in `le`."""

    name: str
    type: MetricType
    labels: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()
    help: str = ""

    @property
    def samples(self) -> tuple[str, ...]:
        """Time series names of the family in Prometheus."""
        if self.type == "histogram":
            return tuple(self.name + part for part in ("_bucket", "_count", "_sum"))
        if self.type == "summary":
            return tuple(self.name + part for part in ("_count", "_sum"))
        return (self.name,)


@dataclass(frozen=True)
class Metrics:
    """One /metrics page. `names`: sample names, as used in queries."""

    exporter: str
    version: str
    recorded: str
    source: str
    families: Mapping[str, Metric]
    signals: Signals

    @property
    def names(self) -> frozenset[str]:
        return frozenset(sample for metric in self.families.values() for sample in metric.samples)


def metrics_of(engine: str, version: str) -> Metrics:
    """The metrics of `engine` in `version`. One page is recorded per engine, from release `Metrics.version`.

    Raises:
        KeyError: no table of the engine, or the release is older than the recorded page covers.
    """
    served_by = engines().get(engine)
    if served_by is None:
        raise KeyError(f"no metrics are known of {engine}")
    page = served_by.metrics_page
    if release_order(version) < release_order(_engine_table(page).get("since", "0")):
        raise KeyError(f"no metrics are known of {engine} {version}")
    return _engine_page(page)


def metrics_of_exporter(name: str) -> Metrics:
    """The metrics of one of `EXPORTERS`."""
    if name not in EXPORTERS:
        raise KeyError(f"no metrics are known of {name}")
    return _exporter_page(name)


@cache
def _engine_page(name: str) -> Metrics:
    table = _engine_table(name)
    body = _engine_table(table["like"]) if "like" in table else table
    return _page(name, table, body, engine_called(name).signals)


@cache
def _exporter_page(name: str) -> Metrics:
    table = _table(files("modelyard.engines").joinpath("data", "metrics"), name)
    return _page(name, table, table, Signals())


def _page(name: str, table: Mapping[str, Any], body: Mapping[str, Any], signals: Signals) -> Metrics:
    everywhere = table.get("labels", ())
    [(old, new)] = table.get("prefix", {"": ""}).items()
    families = {
        new + metric.removeprefix(old): Metric(
            name=new + metric.removeprefix(old),
            type=row["type"],
            labels=frozenset((*everywhere, *row.get("labels", ()))),
            values=MappingProxyType({k: frozenset(v) for k, v in row.get("values", {}).items()}),
            bounds=tuple(row.get("bounds", ())),
            help=row.get("help", ""),
        )
        for metric, row in body["metrics"].items()
    }
    return Metrics(
        exporter=name,
        version=str(table["version"]),
        recorded=str(table["recorded"]),
        source=table["source"],
        families=MappingProxyType(families),
        signals=signals,
    )


@cache
def _engine_table(name: str) -> dict[str, Any]:
    return _table(engine_called(name).folder, "metrics")


def _table(folder: Traversable, stem: str) -> dict[str, Any]:
    recorded = folder.joinpath(f"{stem}.json")  # written from a real page
    return read_table(recorded if recorded.is_file() else folder.joinpath(f"{stem}.yaml"))
