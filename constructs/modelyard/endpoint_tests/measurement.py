"""What a load test measured: requests one by one, and what they add up to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

METRICS = {"ttft": "TTFT", "itl": "ITL", "e2e": "E2E"}
"""Time to first token, between two pieces of an answer, and to its end."""
STATISTICS = ("mean", "p50", "p90", "p95", "p99")
_GATE = re.compile(rf"({'|'.join(METRICS)})-({'|'.join(STATISTICS)})=(\d+(?:\.\d+)?)(ms|s)")


@dataclass(frozen=True)
class Request:
    """One request: seconds from its start, tokens as the server counted them; `error` in place of an
    answer."""

    started: float
    ended: float
    first: float | None = None
    gaps: tuple[float, ...] = ()
    prompt_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Spread:
    """Seconds: the mean and percentiles of a sample that is not empty."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        ranked = sorted(values)
        if not ranked:
            return None
        shares = (percentile(ranked, share) for share in (0.50, 0.90, 0.95, 0.99))
        return cls(math.fsum(ranked) / len(ranked), *shares)

    def as_json(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 6) for name in STATISTICS}


def percentile(ranked: Sequence[float], share: float) -> float:
    """Interpolated between the two nearest ranks of `ranked`, which is sorted and not empty."""
    at = share * (len(ranked) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (at - below)


@dataclass(frozen=True)
class ConcurrencyLevel:
    """The requests that ran while `concurrency` clients asked one after the other.

    `bound`: output tokens a second that the plan gives the whole endpoint under this load, if it is known.
    """

    concurrency: int
    requests: tuple[Request, ...]
    bound: float | None = None

    @property
    def answered(self) -> list[Request]:
        return [request for request in self.requests if request.error is None]

    @property
    def errors(self) -> list[str]:
        return [request.error for request in self.requests if request.error is not None]

    @property
    def error_rate(self) -> float:
        """1 where nothing was asked at all: no request is no success."""
        return len(self.errors) / len(self.requests) if self.requests else 1.0

    @property
    def seconds(self) -> float:
        """From the start of the first answered request to the end of the last one."""
        answered = self.answered
        if not answered:
            return 0.0
        return max(r.ended for r in answered) - min(r.started for r in answered)

    def per_second(self, amount: float) -> float:
        return amount / self.seconds if self.seconds > 0 else 0.0

    @property
    def output_per_second(self) -> float:
        return self.per_second(sum(request.output_tokens for request in self.answered))

    @property
    def total_per_second(self) -> float:
        return self.per_second(sum(r.output_tokens + r.prompt_tokens for r in self.answered))

    @property
    def share_of_bound(self) -> float | None:
        return self.output_per_second / self.bound if self.bound else None

    def spread(self, metric: str) -> Spread | None:
        """Of one of METRICS; None where no request was answered with as many pieces as it takes."""
        answered = self.answered
        if metric == "ttft":
            return Spread.of(request.first for request in answered if request.first is not None)
        if metric == "itl":
            return Spread.of(gap for request in answered for gap in request.gaps)
        return Spread.of(request.ended - request.started for request in answered)

    def as_json(self) -> dict[str, Any]:
        share = self.share_of_bound
        spreads = {metric: self.spread(metric) for metric in METRICS}
        answered = self.answered
        return {
            "concurrency": self.concurrency,
            "requests": len(self.requests),
            "errors": len(self.errors),
            "errorRate": round(self.error_rate, 6),
            "firstError": self.errors[0] if self.errors else None,
            "seconds": round(self.seconds, 3),
            "meanPromptTokens": _mean([request.prompt_tokens for request in answered]),
            "meanOutputTokens": _mean([request.output_tokens for request in answered]),
            "requestsPerSecond": round(self.per_second(len(answered)), 3),
            "outputTokensPerSecond": round(self.output_per_second, 3),
            "totalTokensPerSecond": round(self.total_per_second, 3),
            "boundOutputTokensPerSecond": round(self.bound, 3) if self.bound else None,
            "shareOfBound": round(share, 6) if share is not None else None,
            **{f"{metric}Seconds": found.as_json() if found else None for metric, found in spreads.items()},
        }


def _mean(values: Sequence[int]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


@dataclass(frozen=True)
class Objective:
    """A latency that no level may exceed, such as `ttft-p95=800ms`."""

    metric: str
    statistic: str
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Raises:
        ValueError: `text` is no objective.
        """
        found = _GATE.fullmatch(text)
        if found is None:
            raise ValueError(
                f"'{text}' is no objective; write METRIC-STATISTIC=TIME such as ttft-p95=800ms, with "
                f"{', '.join(METRICS)} and {', '.join(STATISTICS)}"
            )
        metric, statistic, amount, unit = found.groups()
        return cls(metric, statistic, float(amount) / (1000 if unit == "ms" else 1))

    @property
    def name(self) -> str:
        return f"{self.metric}-{self.statistic}"


@dataclass(frozen=True)
class Gate:
    """One condition at one level; `actual` is None where nothing was measured, which passes nothing."""

    name: str
    concurrency: int
    limit: float
    actual: float | None

    @property
    def passed(self) -> bool:
        return self.actual is not None and self.actual <= self.limit


@dataclass(frozen=True)
class BenchResult:
    """A whole run. `about` says what was asked of whom, and with what."""

    model: str
    url: str
    levels: tuple[ConcurrencyLevel, ...]
    max_error_rate: float
    objectives: tuple[Objective, ...] = ()
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every condition of every level."""
        found = []
        for level in self.levels:
            found.append(Gate("error-rate", level.concurrency, self.max_error_rate, level.error_rate))
            for objective in self.objectives:
                spread = level.spread(objective.metric)
                actual = getattr(spread, objective.statistic) if spread else None
                found.append(Gate(objective.name, level.concurrency, objective.seconds, actual))
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether every level answered something, and every gate held."""
        answered = bool(self.levels) and all(level.answered for level in self.levels)
        return answered and all(gate.passed for gate in self.gates)
