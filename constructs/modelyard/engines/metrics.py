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

_ENGINES = ("vllm", "vllm-neuron", "llama-server", "sglang", "triton")


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
class Signals:
    """Metrics that mean the same in every engine; None where an engine has none.

    Gauges `waiting`, `running` and `kv_cache_usage` (0 to 1); histograms of seconds `ttft`, `itl` and `e2e`; counters
    `prompt_tokens`, `generated_tokens`, `preemptions`, `requests` (finished ones) and `failed`, which may carry a matcher.
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


_VLLM = Signals(
    waiting="vllm:num_requests_waiting",
    running="vllm:num_requests_running",
    kv_cache_usage="vllm:kv_cache_usage_perc",
    ttft="vllm:time_to_first_token_seconds",
    itl="vllm:inter_token_latency_seconds",
    e2e="vllm:e2e_request_latency_seconds",
    prompt_tokens="vllm:prompt_tokens_total",
    generated_tokens="vllm:generation_tokens_total",
    preemptions="vllm:num_preemptions_total",
    requests="vllm:request_success_total",
    failed='vllm:request_success_total{finished_reason="error"}',
)
_VLLM_NEURON = Signals(
    **{name: metric.replace("vllm:", "vllm_neuron:") for name, metric in vars(_VLLM).items() if metric}
)

_SIGNALS = {
    "vllm": _VLLM,
    "vllm-neuron": _VLLM_NEURON,
    "llama-server": Signals(
        waiting="llamacpp:requests_deferred",
        running="llamacpp:requests_processing",
        prompt_tokens="llamacpp:prompt_tokens_total",
        generated_tokens="llamacpp:tokens_predicted_total",
    ),
    "sglang": Signals(
        waiting="sglang:num_queue_reqs",
        running="sglang:num_running_reqs",
        kv_cache_usage="sglang:token_usage",
        ttft="sglang:time_to_first_token_seconds",
        itl="sglang:inter_token_latency_seconds",
        e2e="sglang:e2e_request_latency_seconds",
        prompt_tokens="sglang:prompt_tokens_total",
        generated_tokens="sglang:generation_tokens_total",
        preemptions="sglang:num_retracted_requests_total",
        requests="sglang:num_requests_total",
        failed="sglang:num_aborted_requests_total",
    ),
    "triton": Signals(
        waiting="nv_inference_pending_request_count",
        requests="nv_inference_request_success",
        failed="nv_inference_request_failure",
    ),
}


def metrics_of(engine: str, version: str) -> Metrics:
    """What `engine` has in `version`; one page is recorded an engine, and `Metrics.version` says of which release.

    Raises:
        KeyError: no table of the engine, or the release is older than the recorded page can speak for.
    """
    engine = engine.removesuffix("-tensorrtllm")  # Triton's page, whatever is behind it
    if engine not in _ENGINES:
        raise KeyError(f"no metrics are known of {engine}")
    if release_order(version) < release_order(_table(engine).get("since", "0")):
        raise KeyError(f"no metrics are known of {engine} {version}")
    return _page(engine)


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
        signals=_SIGNALS.get(name, Signals()),
    )


@cache
def _table(name: str) -> dict[str, Any]:
    folder = files("modelyard.engines").joinpath("data", "metrics")
    recorded = folder.joinpath(f"{name}.json")  # written from a real page
    if recorded.is_file():
        table: dict[str, Any] = json.loads(recorded.read_text(encoding="utf-8"))
        return table
    text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    table = YAML(typ="safe", pure=True).load(text)
    return table
