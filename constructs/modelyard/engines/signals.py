"""Engine metrics by meaning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Signals:
    """Metrics with the same meaning in every engine; None if an engine has no such metric.

    Gauges: `waiting`, `running` and `kv_cache_usage` (0 to 1). Histograms in seconds: `ttft`, `itl` and
    `e2e`. Counters: `prompt_tokens`, `generated_tokens`, `preemptions`, `requests` (finished) and `failed`,
    which may have a label matcher.
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
    """Failed requests: a metric, optionally with a label matcher such as `x{reason="error"}`."""
