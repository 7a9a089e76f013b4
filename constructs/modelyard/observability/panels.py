"""Panels as data, and their grid layout, which follows from their order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import GraphThresholdsStyleConfig
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import BigValueGraphMode, GraphTresholdsStyleMode

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
Kind = Literal["graph", "stat"]

_WIDTH = 24  # columns of Grafana's grid
_HEIGHT = {"stat": 4, "graph": 8}


@dataclass(frozen=True)
class Panel:
    """One panel. `queries`: (PromQL, legend); `limit`: the threshold of the corresponding alert."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    limit: float | None = None
    least_is_bad: bool = False
    about: str = ""
    kind: Kind = "graph"
    width: int = 8


@dataclass(frozen=True)
class PanelRow:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A dashboard variable: the values of `label` in the series of `query`."""

    name: str
    query: str
    label: str
    many: bool = False


def dashboard_json(
    *, uid: str, title: str, about: str, rows: Sequence[PanelRow], variables: Sequence[Variable] = ()
) -> str:
    """Dashboard JSON. `uid` never changes, because links and bookmarks contain it."""
    board = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags(["modelyard"])
        .editable()
        .time("now-6h", "now")
        .refresh("1m")
        .timezone("browser")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for variable in variables:
        board = board.with_variable(_variable(variable))
    lines, y = [], 0
    for row in rows:
        lines.append(json.dumps({**_row_outline(y), "title": row.title}, sort_keys=True))
        y += 1
        x, height = 0, 0
        for panel in row.panels:
            if x + panel.width > _WIDTH:
                x, y, height = 0, y + height, 0
            lines.append(_line(panel, x, y))
            x, height = x + panel.width, max(height, _HEIGHT[panel.kind])
        y += height
    panels = ",\n".join(lines)
    rest = json.dumps(_plain(board), sort_keys=True)
    # One panel per line gives readable diffs; json.dumps with indentation would not use the C encoder.
    return f'{{"panels": [\n{panels}\n],\n{rest[1:]}\n'


def _plain(built: Any) -> dict[str, Any]:
    """The SDK's object as plain data."""
    found: dict[str, Any] = json.loads(JSONEncoder().encode(built.build()))
    return found


def _line(panel: Panel, x: int, y: int) -> str:
    """The panel at its grid position. The SDK builds each kind of panel once: thousands of panels differ only
    in their texts."""
    text = _outline(panel.kind, panel.unit, len(panel.queries), panel.limit, panel.least_is_bad, panel.width)
    texts = [panel.title, panel.about, *(part for query in panel.queries for part in query)]
    for marker, said in zip(_written_markers(len(panel.queries)), texts, strict=True):
        text = text.replace(marker, json.dumps(said))
    return text.replace(_PLACE, f'"x": {x}, "y": {y}')


_PLACE = '"x": 0, "y": 0'


def _markers(queries: int) -> list[str]:
    """Placeholders for the title, the description, and the expression and legend of each query."""
    parts = (
        "title",
        "about",
        *(f"{part}{number}" for number in range(queries) for part in ("query", "legend")),
    )
    return [f"\0{part}\0" for part in parts]


@cache
def _written_markers(queries: int) -> tuple[str, ...]:
    """The placeholders, JSON-encoded."""
    return tuple(json.dumps(marker) for marker in _markers(queries))


@lru_cache(maxsize=1 << 10)
def _row_outline(y: int) -> dict[str, Any]:
    return _plain(dashboard.Row("").grid_pos(model.GridPos(h=1, w=_WIDTH, x=0, y=y)))


def _variable(variable: Variable) -> dashboard.QueryVariable:
    query = f"label_values({variable.query}, {variable.label})"
    built = (
        dashboard.QueryVariable(variable.name)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": variable.name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return built.include_all(True).multi(True).all_value(".+") if variable.many else built


@lru_cache(maxsize=1 << 10)
def _outline(kind: Kind, unit: str, queries: int, limit: float | None, least_is_bad: bool, width: int) -> str:
    """JSON of a panel with placeholders for its texts, at grid position 0, 0."""
    built: Any
    title, about, *others = _markers(queries)
    if kind == "stat":
        built = stat.Panel().graph_mode(BigValueGraphMode.NONE)
    else:
        built = timeseries.Panel().fill_opacity(8).line_width(1.5)
    built = (
        built.title(title)
        .description(about)
        .datasource(DATASOURCE)
        .unit(unit)
        .min(0)
        .grid_pos(model.GridPos(h=_HEIGHT[kind], w=width, x=0, y=0))
    )
    for position in range(queries):
        query, legend = others[2 * position : 2 * position + 2]
        target = prometheus.Dataquery().expr(query).legend_format(legend).ref_id(chr(ord("A") + position))
        built = built.with_target(target)
    if limit is not None:
        built = built.thresholds(_thresholds(limit, least_is_bad))
        if kind == "graph":
            line = GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
            built = built.thresholds_style(line)
    return json.dumps(_plain(built), sort_keys=True)


def _thresholds(limit: float, least_is_bad: bool) -> dashboard.ThresholdsConfig:
    below, above = ("red", "green") if least_is_bad else ("green", "red")
    steps = [model.Threshold(value=None, color=below), model.Threshold(value=limit, color=above)]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
