"""Which metric of an engine says what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Signals:
    """Metrics that mean the same in every engine; None where an engine has none.

    Gauges `waiting`, `running` and `kv_cache_usage` (0 to 1); histograms of seconds `ttft`, `itl` and `e2e`;
    counters `prompt_tokens`, `generated_tokens`, `preemptions`, `requests` (finished ones) and `failed`,
    which may carry a matcher.
    """

    waiting: str | None = None
    running: str | None = None
    kv_cache_usage: str | None = None
    ttft: str | None = None
    itl: str | None = None
    e2e: str | None = None
    prompt_tokens: str | None = None
    generated_tokens: str | None = None
    preemptions: str | None = None
    requests: str | None = None
    failed: str | None = None
    """Requests that the server failed: a metric, or a metric with a matcher such as `x{reason="error"}`."""
