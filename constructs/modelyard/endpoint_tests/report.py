"""A load test as a document for programs, a page for people and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from modelyard.endpoint_tests.measurement import METRICS, BenchResult, ConcurrencyLevel, Gate, Spread

SCHEMA_VERSION = 1


def to_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def document(result: BenchResult) -> dict[str, Any]:
    """The stable form: seconds, tokens and shares, in plain numbers."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Bench",
        "model": result.model,
        "url": result.url,
        "passed": result.passed,
        "verdict": verdict(result),
        **result.about,
        "levels": [level.as_json() for level in result.levels],
        "gates": [
            {
                "name": gate.name,
                "concurrency": gate.concurrency,
                "limit": gate.limit,
                "actual": gate.actual,
                "passed": gate.passed,
            }
            for gate in result.gates
        ],
    }


def unreachable(model: str, url: str, reason: str) -> dict[str, Any]:
    """What stands in place of `document` where no load could be put on."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Bench",
        "model": model,
        "url": url,
        "passed": False,
        "verdict": f"failed: {reason}",
        "levels": [],
        "gates": [],
    }


def verdict(result: BenchResult) -> str:
    """One line: what was reached, or what was not."""
    broken = [gate for gate in result.gates if not gate.passed]
    if broken:
        return "failed: " + "; ".join(_broken(gate) for gate in broken)
    silent = [str(level.concurrency) for level in result.levels if not level.answered]
    if silent or not result.levels:
        return (
            f"failed: nothing was answered at concurrency {', '.join(silent)}"
            if silent
            else "failed: no load"
        )
    best = max(result.levels, key=lambda level: level.output_per_second)
    share = f", {best.share_of_bound:.0%} of the plan's bound" if best.share_of_bound is not None else ""
    # A level below its bound does not excuse another above: which one is fastest may be chance.
    over = [level for level in result.levels if level.share_of_bound is not None and level.share_of_bound > 1]
    others = [
        f"{level.share_of_bound:.0%} at concurrency {level.concurrency}" for level in over if level != best
    ]
    share += "".join(f", {each}" for each in others)
    if over:
        share += ", which its hardware cannot give: this is not the planned model, or prompts were cached"
    return f"ok: {best.output_per_second:,.0f} output tokens/s at concurrency {best.concurrency}{share}"


def _broken(gate: Gate) -> str:
    where = f"at concurrency {gate.concurrency}"
    if gate.name == "error-rate":
        return f"{gate.actual:.1%} errors {where}, at most {gate.limit:.1%} allowed"
    actual = "not measured" if gate.actual is None else milliseconds(gate.actual)
    return f"{gate.name} {actual} {where}, at most {milliseconds(gate.limit)} allowed"


def milliseconds(seconds: float) -> str:
    amount = seconds * 1000
    return f"{amount:,.0f} ms" if amount >= 10 else f"{amount:.1f} ms"


COLUMNS = (
    "Concurrency",
    "Requests",
    "Errors",
    "Requests/s",
    "Output tok/s",
    "Total tok/s",
    "Bound tok/s",
    "Share",
    *(f"{name} mean / P50 / P90 / P99 (ms)" for name in METRICS.values()),
)


def row(level: ConcurrencyLevel) -> tuple[str, ...]:
    """The cells of `COLUMNS`."""
    share = level.share_of_bound
    return (
        str(level.concurrency),
        str(len(level.requests)),
        str(len(level.errors)),
        f"{level.per_second(len(level.answered)):.2f}",
        f"{level.output_per_second:,.1f}",
        f"{level.total_per_second:,.1f}",
        f"{level.bound:,.0f}" if level.bound else "-",
        f"{share:.1%}" if share is not None else "-",
        *(_cells(level.spread(metric)) for metric in METRICS),
    )


def _cells(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return " / ".join(f"{each * 1000:,.1f}" for each in (spread.mean, spread.p50, spread.p90, spread.p99))


def markdown(result: BenchResult) -> str:
    """A page with the verdict, the table, and how it was measured."""
    lines = [f"# {result.model} under load", "", f"**{verdict(result)}**", ""]
    lines.append(f"| {' | '.join(COLUMNS)} |")
    lines.append(f"|{'|'.join(' ---: ' for _ in COLUMNS)}|")
    lines += [f"| {' | '.join(row(level))} |" for level in result.levels]
    failing = [(level.concurrency, level.errors[0]) for level in result.levels if level.errors]
    if failing:
        lines += ["", "First error:", ""]
        lines += [f"- concurrency {concurrency}: `{error}`" for concurrency, error in failing]
    lines += [
        "",
        f"Endpoint: {result.url}. TTFT: until the first piece of the answer; ITL: between two pieces;",
    ]
    lines += ["E2E: until its end. Every prompt is new to the prefix cache."]
    if statement := result.about.get("bound", {}).get("statement"):
        lines += ["", f"Bound: {statement}."]
    return "\n".join(lines) + "\n"


def plot(result: BenchResult, path: Path) -> None:
    """Latency over throughput, a line a metric and a point a level, into the SVG or PNG at `path`.

    Raises:
        ModuleNotFoundError: the package `matplotlib` is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    # Texts stay texts, and two runs of the same numbers are the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "modelyard", "font.size": 9}):
        from matplotlib.figure import Figure

        levels = [level for level in result.levels if level.answered]
        figure = Figure(figsize=(9, 6.4), layout="constrained")
        figure.suptitle(f"{result.model}: latency and throughput by concurrency", fontsize=12)
        for axes, (metric, name) in zip(
            figure.subplots(len(METRICS), 1, sharex=True), METRICS.items(), strict=True
        ):
            _panel(axes, levels, metric, name)
        figure.align_ylabels()
        figure.axes[-1].set_xlabel("output tokens a second, whole endpoint")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)


def _panel(axes: Any, levels: list[ConcurrencyLevel], metric: str, name: str) -> None:
    measured = [(level, spread) for level in levels if (spread := level.spread(metric))]
    throughput = [level.output_per_second for level, _ in measured]
    for statistic, colour in (("p50", "#1b6ca8"), ("p90", "#e08e0b"), ("p99", "#b3261e")):
        values = [getattr(spread, statistic) * 1000 for _, spread in measured]
        axes.plot(throughput, values, marker="o", markersize=4, color=colour, label=statistic.upper())
    for (level, spread), x in zip(measured, throughput, strict=True):
        axes.annotate(
            str(level.concurrency),
            (x, spread.p99 * 1000),
            textcoords="offset points",
            xytext=(0, 6),
            ha="center",
            color="#555555",
        )
    axes.set_ylabel(f"{name} (ms)")
    axes.margins(x=0.06)
    if measured:  # room for the numbers above the points
        axes.set_ylim(0, 1200 * max(spread.p99 for _, spread in measured))
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if metric == next(iter(METRICS)) and measured:
        axes.legend(loc="upper left", frameon=False, ncols=3, title="number at a point: concurrency")
