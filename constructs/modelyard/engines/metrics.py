"""What each engine and exporter has on its /metrics page, and which of it says what: dated tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from ruamel.yaml import YAML

from modelyard.engines.registry import engines
from modelyard.engines.signals import Signals
from modelyard.engines.versions import release_order

MetricType = Literal["counter", "gauge", "histogram", "summary"]

EXPORTERS = (
    "dcgm-exporter",
    "neuron-monitor",
    "kube-state-metrics",
    "kubelet",
    "karpenter",
    "keda",
    "cert-manager",
    "litellm",
    "prometheus",
)
"""Who else is asked, besides the engines."""


@dataclass(frozen=True)
class Metric:
    """One family. `values`: the only values of some labels; `bounds`: upper bounds of a histogram, as `le` writes them."""

    name: str
    type: MetricType
    labels: frozenset[str] = frozenset()
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bounds: tuple[str, ...] = ()
    help: str = ""

    @property
    def samples(self) -> tuple[str, ...]:
        """Names under which Prometheus stores the family."""
        if self.type == "histogram":
            return tuple(self.name + part for part in ("_bucket", "_count", "_sum"))
        if self.type == "summary":
            return tuple(self.name + part for part in ("_count", "_sum"))
        return (self.name,)


@dataclass(frozen=True)
class Metrics:
    """One page. `names` are those of samples, as queries write them."""

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
    """What `engine` has in `version`; one page is recorded an engine, and `Metrics.version` says of which release.

    Raises:
        KeyError: no table of the engine, or the release is older than the recorded page can speak for.
    """
    if engine not in engines():
        raise KeyError(f"no metrics are known of {engine}")
    page = engines()[engine].metrics_page
    if release_order(version) < release_order(_table(page).get("since", "0")):
        raise KeyError(f"no metrics are known of {engine} {version}")
    return _page(page)


def metrics_of_exporter(name: str) -> Metrics:
    """What one of `EXPORTERS` has."""
    if name not in EXPORTERS:
        raise KeyError(f"no metrics are known of {name}")
    return _page(name)


@cache
def _page(name: str) -> Metrics:
    table = _table(name)
    body = _table(table["like"]) if "like" in table else table
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
        signals=engines()[name].signals if name in engines() else Signals(),
    )


@cache
def _table(name: str) -> dict[str, Any]:
    own = name in engines()
    folder = engines()[name].folder if own else files("modelyard.engines").joinpath("data", "metrics")
    stem = "metrics" if own else name
    recorded = folder.joinpath(f"{stem}.json")  # written from a real page
    if recorded.is_file():
        table: dict[str, Any] = json.loads(recorded.read_text(encoding="utf-8"))
        return table
    text = folder.joinpath(f"{stem}.yaml").read_text(encoding="utf-8")
    table = YAML(typ="safe", pure=True).load(text)
    return table
