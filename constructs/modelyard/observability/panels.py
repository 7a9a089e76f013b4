"""Panels as data, and their grid: a dashboard's layout follows from the order in which panels are named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import GraphThresholdsStyleConfig
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import BigValueGraphMode, GraphTresholdsStyleMode

DATASOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
_WIDTH = 24  # columns of Grafana's grid
_HEIGHT = {"stat": 4, "graph": 8}


@dataclass(frozen=True)
class Panel:
    """One question. `queries` are (PromQL, legend); `limit` is the threshold of the alert that watches the same."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    limit: float | None = None
    least_is_bad: bool = False
    about: str = ""
    kind: Literal["graph", "stat"] = "graph"
    width: int = 8


@dataclass(frozen=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard: the values of `label` among the series of `query`."""

    name: str
    query: str
    label: str
    many: bool = False


def dashboard_json(
    *, uid: str, title: str, about: str, rows: Sequence[Row], variables: Sequence[Variable] = ()
) -> str:
    """Grafana's JSON. `uid` never changes: links and bookmarks hold it."""
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
    y = 0
    for row in rows:
        board = board.with_row(dashboard.Row(row.title).grid_pos(model.GridPos(h=1, w=_WIDTH, x=0, y=y)))
        y += 1
        x, height = 0, 0
        for panel in row.panels:
            if x + panel.width > _WIDTH:
                x, y, height = 0, y + height, 0
            board = board.with_panel(_panel(panel, x, y))
            x, height = x + panel.width, max(height, _HEIGHT[panel.kind])
        y += height
    built = json.loads(JSONEncoder().encode(board.build()))
    panels = ",\n".join(json.dumps(panel, sort_keys=True) for panel in built.pop("panels"))
    rest = json.dumps(built, sort_keys=True)
    # A panel a line shows what changed; the encoder that indents is not written in C.
    return f'{{"panels": [\n{panels}\n],\n{rest[1:]}\n'


def _variable(variable: Variable) -> dashboard.QueryVariable:
    query = f"label_values({variable.query}, {variable.label})"
    built = (
        dashboard.QueryVariable(variable.name)
        .datasource(DATASOURCE)
        .query({"query": query, "refId": variable.name})
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    return built.include_all(True).multi(True).all_value(".+") if variable.many else built


def _panel(panel: Panel, x: int, y: int) -> Any:
    built: Any
    if panel.kind == "stat":
        built = stat.Panel().graph_mode(BigValueGraphMode.NONE)
    else:
        built = timeseries.Panel().fill_opacity(8).line_width(1.5)
    built = (
        built.title(panel.title)
        .description(panel.about)
        .datasource(DATASOURCE)
        .unit(panel.unit)
        .min(0)
        .grid_pos(model.GridPos(h=_HEIGHT[panel.kind], w=panel.width, x=x, y=y))
    )
    for position, (query, legend) in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query).legend_format(legend).ref_id(chr(ord("A") + position))
        built = built.with_target(target)
    if panel.limit is not None:
        built = built.thresholds(_thresholds(panel.limit, panel.least_is_bad))
        if panel.kind == "graph":
            line = GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.DASHED)
            built = built.thresholds_style(line)
    return built


def _thresholds(limit: float, least_is_bad: bool) -> dashboard.ThresholdsConfig:
    below, above = ("red", "green") if least_is_bad else ("green", "red")
    steps = [model.Threshold(value=None, color=below), model.Threshold(value=limit, color=above)]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
