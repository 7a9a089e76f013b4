"""The metric contract: every metric, label and label value in a query exists on some /metrics page or is one
of our recordings. Needs PyPI's `promql-parser`, which rendering does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import promql_parser as promql

from modelyard.engines import EXPORTERS, Metric, Metrics, metrics_of_exporter
from modelyard.observability.rule import Alert, Recording, RuleGroup

# Labels that Prometheus adds to every series: from service discovery, and `model` from the relabeling in our
# ServiceMonitors.
TARGET_LABELS = frozenset(
    {"job", "instance", "namespace", "pod", "container", "service", "endpoint", "model"}
)

_ALTERNATIVES = re.compile(r"^[\w.|/ -]+$")
_VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$__interval": "1m"}


@dataclass(frozen=True)
class _Series:
    labels: frozenset[str]
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Contract:
    """The series that queries can use."""

    series: Mapping[str, _Series]

    def complaints(self, query: str) -> list[str]:
        """The problems of a query, which may contain Grafana variables; empty if everything it names
        exists."""
        try:
            tree = promql.parse(_without_variables(query))
        except ValueError as error:
            return [f"{query}: {error}"]
        nodes: list[promql.Expr] = []
        promql.walk(tree, pre_visit=nodes.append)
        selectors = [node for node in nodes if isinstance(node, promql.VectorSelector)]
        problems = [problem for selector in selectors for problem in self._selector(selector)]
        known = {
            label for s in selectors if s.name in self.series for label in self.series[s.name or ""].labels
        }
        return problems + [
            f"no metric in it has label {label}: {query}"
            for node in nodes
            for label in _grouped(node)
            if label not in known
        ]

    def _selector(self, selector: promql.VectorSelector) -> Iterator[str]:
        series = self.series.get(selector.name or "")
        if series is None:
            yield f"no /metrics page has {selector.name}"
            return
        for matcher in selector.matchers.matchers:
            if matcher.name not in series.labels:
                yield f"{selector.name} has no label {matcher.name}"
                continue
            allowed = series.values.get(matcher.name)
            if allowed is None or not _ALTERNATIVES.match(matcher.value):
                continue
            wrong = sorted(set(matcher.value.split("|")) - allowed)
            if wrong:
                yield f"{matcher.name} of {selector.name} is never {', '.join(wrong)}"


def contract(pages: Iterable[Metrics], groups: Iterable[RuleGroup] = ()) -> Contract:
    """The contract of the engines' `pages`, every exporter, and the recordings in `groups`."""
    series: dict[str, _Series] = {}
    for page in (*pages, *(metrics_of_exporter(name) for name in EXPORTERS)):
        for metric in page.families.values():
            series |= {sample: _of_metric(metric, sample) for sample in metric.samples}
    for recording in recordings_in(groups):
        before = series.get(recording.record, _Series(frozenset()))
        series[recording.record] = _Series(before.labels | {*recording.by, *recording.labels})
    return Contract(series)


def recordings_in(groups: Iterable[RuleGroup]) -> Iterator[Recording]:
    return (rule for group in groups for rule in group.rules if isinstance(rule, Recording))


def broken_rules(groups: Iterable[RuleGroup], offered: Contract) -> list[str]:
    """Problems of rules, each with its rule's name."""
    return [
        f"{rule.name if isinstance(rule, Alert) else rule.record}: {complaint}"
        for group in groups
        for rule in group.rules
        for complaint in offered.complaints(rule.expr)
    ]


def _of_metric(metric: Metric, sample: str) -> _Series:
    labels = metric.labels | TARGET_LABELS
    values = dict(metric.values)
    if sample.endswith("_bucket") and metric.type == "histogram":
        labels |= {"le"}
        values["le"] = frozenset(metric.bounds)
    return _Series(labels, values)


def _grouped(node: promql.Expr) -> list[str]:
    """Labels in `by`, `without`, `on`, `ignoring` and `group_left`."""
    if isinstance(node, promql.AggregateExpr) and node.modifier:
        return list(node.modifier.labels)
    if isinstance(node, promql.BinaryExpr) and node.modifier and node.modifier.matching:
        return list(node.modifier.matching.labels)
    return []


def _without_variables(query: str) -> str:
    for variable, value in _VARIABLES.items():
        query = query.replace(variable, value)
    return query
