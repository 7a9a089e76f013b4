"""Multi-window burn rate alerts on a service level's error budget.

The long window shows that the burn matters, the short one that it continues. Factors and windows are from the
Google SRE workbook, chapter 5: 2 % of a month's budget in an hour, 5 % in six hours, 10 % in three days.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelyard.engines import Metrics
from modelyard.observability.rule import Alert, Recording, RuleGroup, Severity
from modelyard.observability.selection import Selection, metrics_for
from modelyard.planning import ModelPlan


@dataclass(frozen=True)
class _Burn:
    factor: float
    long: str
    short: str
    severity: Severity


_BURNS = (
    _Burn(14.4, "1h", "5m", "critical"),
    _Burn(6, "6h", "30m", "critical"),
    _Burn(1, "3d", "6h", "warning"),
)
_WINDOWS = tuple(dict.fromkeys(window for burn in _BURNS for window in (burn.short, burn.long)))
_LATENCY_BUDGET = 0.05  # a p95 target allows 5 % slow requests


@dataclass(frozen=True)
class ServiceLevel:
    """A stated service level: its bad requests as a share over a window, and the allowed share."""

    alert: str
    record: str
    budget: float
    text: str
    bad: str
    """PromQL with the placeholder WINDOW."""


def service_levels(plan: ModelPlan, namespace: str) -> RuleGroup | None:
    """Recordings and alerts of the model's service levels; None if it states none that its engine's metrics
    support."""
    levels = list(stated_levels(plan, namespace))
    if not levels:
        return None
    chosen = Selection.of(plan, namespace)
    rules: list[Recording | Alert] = []
    for level in levels:
        for window in _WINDOWS:
            expr = level.bad.replace("WINDOW", window)
            rules.append(Recording(f"{level.record}:ratio_rate{window}", expr, labels=chosen.labels))
    for level in levels:
        rules += [_alert(level, burn, chosen) for burn in _BURNS]
    return RuleGroup(f"{plan.name}.service-levels", tuple(rules))


def _alert(level: ServiceLevel, burn: _Burn, chosen: Selection) -> Alert:
    most = f"{burn.factor * level.budget:.6g}"
    windows = (
        f"{chosen.series(f'{level.record}:ratio_rate{window}')} > {most}"
        for window in (burn.long, burn.short)
    )
    return Alert(
        level.alert,
        " and on (model, namespace) ".join(windows),
        "2m",
        burn.severity,
        f"{chosen.model}: {level.text} is missed {burn.factor:g} times as often as it may be, for {burn.long}",
        {**chosen.labels, "window": burn.long},
    )


def stated_levels(plan: ModelPlan, namespace: str) -> Iterator[ServiceLevel]:
    """The service levels that the model file states and the engine's metrics support."""
    chosen, metrics, slo = Selection.of(plan, namespace), metrics_for(plan), plan.model.observability.slo
    signals = metrics.signals
    for name, target, histogram, text in (
        ("Ttft", slo.ttft_p95, signals.ttft, "time to first token"),
        ("Itl", slo.itl_p95, signals.itl, "time between tokens"),
        ("E2e", slo.e2e_p95, signals.e2e, "time to the whole answer"),
    ):
        if target is not None and histogram is not None:
            yield ServiceLevel(
                f"{name}BudgetBurn",
                f"model:{name.lower()}_slow",
                _LATENCY_BUDGET,
                f"{text} of {target * 1000:g} ms",
                slow_share(chosen, metrics, histogram, target),
            )
    if slo.error_rate is not None and signals.failed and signals.requests:
        failed = f"sum(rate({chosen.series(signals.failed)}[WINDOW]))"
        yield ServiceLevel(
            "ErrorBudgetBurn",
            "model:requests_failed",
            slo.error_rate,
            f"an error rate of {slo.error_rate * 100:g}%",
            f"{failed} / (sum(rate({chosen.series(signals.requests)}[WINDOW])) > 0)",
        )


def slow_share(chosen: Selection, metrics: Metrics, histogram: str, target: float) -> str:
    """The share of observations above `target`, interpolated within its bucket like histogram_quantile.

    Without interpolation, a target between two bounds would be rounded to the next bound: 800 ms to one
    second.
    """
    bounds = [b for b in metrics.families[histogram].bounds if b != "+Inf"]
    above = next((b for b in bounds if float(b) >= target), None)
    below = next((b for b in reversed(bounds) if float(b) <= target), None)
    parts = []
    if above is None or above == below:
        parts.append((1.0, above or bounds[-1]))
    else:
        least = float(below) if below else 0.0
        share = (target - least) / (float(above) - least)
        parts += [(1 - share, below)] if below else []
        parts.append((share, above))
    good = " + ".join(
        f"{weight:.6g} * sum(rate({chosen.series(f'{histogram}_bucket', _le(bound))}[WINDOW]))"
        for weight, bound in parts
    )
    return f"1 - ({good}) / (sum(rate({chosen.series(f'{histogram}_count')}[WINDOW])) > 0)"


def _le(bound: str) -> str:
    return f'le="{bound}"'
