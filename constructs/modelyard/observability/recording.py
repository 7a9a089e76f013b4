"""Recording rules with the same names for every engine, so that alerts and dashboards are independent of the
engine."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.engines import Signals
from modelyard.observability.rule import Recording, RuleGroup
from modelyard.observability.selection import Selection, container_resource, metrics_for
from modelyard.planning import ModelPlan

_QUANTILES = {"p50": 0.5, "p95": 0.95}


def model_recordings(plan: ModelPlan, namespace: str) -> RuleGroup:
    """Recordings of one model. Every series has the labels `model` and `namespace`."""
    chosen = Selection.of(plan, namespace)
    signals = metrics_for(plan).signals
    series = [*_load(chosen, signals), *_latencies(chosen, signals), *_replicas(chosen, plan)]
    rules = (Recording(name, expr, labels=chosen.labels) for name, expr in series)
    return RuleGroup(f"{plan.name}.recordings", tuple(rules))


def _load(chosen: Selection, signals: Signals) -> Iterator[tuple[str, str]]:
    for name, metric in (("waiting", signals.waiting), ("running", signals.running)):
        if metric:
            yield f"model:requests_{name}:sum", f"sum({chosen.series(metric)})"
    if signals.kv_cache_usage:
        yield "model:kv_cache_usage:max", f"max({chosen.series(signals.kv_cache_usage)})"
    for name, metric in (
        ("generated_tokens", signals.generated_tokens),
        ("prompt_tokens", signals.prompt_tokens),
        ("requests", signals.requests),
        ("failed_requests", signals.failed),
        ("preemptions", signals.preemptions),
    ):
        if metric:
            yield f"model:{name}:rate5m", f"sum(rate({chosen.series(metric)}[5m]))"


def _latencies(chosen: Selection, signals: Signals) -> Iterator[tuple[str, str]]:
    for name, histogram in (("ttft", signals.ttft), ("itl", signals.itl), ("e2e", signals.e2e)):
        if histogram:
            buckets = chosen.series(f"{histogram}_bucket")
            for suffix, quantile in _QUANTILES.items():
                expr = f"histogram_quantile({quantile}, sum by (le) (rate({buckets}[5m])))"
                yield f"model:{name}_seconds:{suffix}", expr


def _replicas(chosen: Selection, plan: ModelPlan) -> Iterator[tuple[str, str]]:
    yield "model:replicas_up:sum", f"sum({chosen.series('up')})"
    yield (
        "model:replicas_wanted:max",
        f"max({chosen.wanted})",
    )
    resource = container_resource(plan.serving.accelerator.resource)
    requests = chosen.pods(
        "kube_pod_container_resource_requests", f'resource="{resource}"', 'node!=""', 'container="server"'
    )
    yield "model:accelerators:sum", f"sum({requests})"
