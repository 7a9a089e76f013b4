"""The Grafana dashboard of one model. Thresholds are those of its alerts."""

from __future__ import annotations

import hashlib

from modelyard.observability.alerts import KV_CACHE_FULL, most_waiting
from modelyard.observability.panels import Panel, PanelRow, dashboard_json
from modelyard.observability.selection import Selection, metrics_for
from modelyard.planning import ModelPlan, Plan


def model_dashboard(plan: ModelPlan, whole: Plan) -> str:
    """One model: traffic, latency, queue and KV cache, accelerators, start-up, cost."""
    environment = whole.environment
    chosen = Selection.of(plan, environment.namespace)
    rows = [
        PanelRow("Traffic", _traffic(plan, chosen)),
        PanelRow("Latency", _latency(plan, chosen)),
        PanelRow("Queue and KV cache", _saturation(plan, chosen)),
        PanelRow("Replicas and start-up", _replicas(plan, chosen)),
        PanelRow("Accelerators", _devices(plan, chosen)),
    ]
    if plan.cost.node_price is not None:
        rows.append(PanelRow("Cost", _cost(chosen)))
    return dashboard_json(
        uid=_uid(f"modelyard-{environment.name}-{plan.name}"),
        title=f"Modelyard / {environment.name} / {plan.name}",
        about=f"{plan.model.model.uri} on {plan.serving.accelerator.name}:{plan.serving.count}",
        rows=[row for row in rows if row.panels],
    )


def _uid(name: str) -> str:
    """The dashboard UID, at most 40 characters, which is Grafana's limit."""
    return name if len(name) <= 40 else f"modelyard-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _traffic(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    signals, panels = metrics_for(plan).signals, []
    if signals.requests:
        queries = [(chosen.series("model:requests:rate5m"), "finished")]
        if signals.failed:
            queries.append((chosen.series("model:failed_requests:rate5m"), "failed"))
        panels.append(Panel("Requests a second", tuple(queries), unit="reqps"))
    if signals.generated_tokens:
        queries = [(chosen.series("model:generated_tokens:rate5m"), "generated")]
        if signals.prompt_tokens:
            queries.append((chosen.series("model:prompt_tokens:rate5m"), "prompt"))
        panels.append(Panel("Tokens a second", tuple(queries)))
    if signals.running:
        running = (chosen.series("model:requests_running:sum"), "running")
        panels.append(
            Panel(
                "Requests in the batch", (running,), about=f"At most {plan.serving.max_num_seqs} a replica."
            )
        )
    return tuple(panels)


def _latency(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    signals, slo = metrics_for(plan).signals, plan.model.observability.slo
    asked = (
        ("Time to first token", "ttft", signals.ttft, slo.ttft_p95),
        ("Time between tokens", "itl", signals.itl, slo.itl_p95),
        ("Time to the whole answer", "e2e", signals.e2e, slo.e2e_p95),
    )
    return tuple(
        Panel(
            title,
            tuple((chosen.series(f"model:{name}_seconds:{q}"), q) for q in ("p50", "p95")),
            unit="s",
            limit=limit,
        )
        for title, name, histogram, limit in asked
        if histogram
    )


def _saturation(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    signals, panels = metrics_for(plan).signals, []
    if signals.waiting:
        up = chosen.series("model:replicas_up:sum")
        waiting = f"{chosen.series('model:requests_waiting:sum')} / on (model, namespace) ({up} > 0)"
        panels.append(Panel("Requests waiting a replica", ((waiting, "waiting"),), limit=most_waiting(plan)))
    if signals.kv_cache_usage:
        usage = (chosen.series("model:kv_cache_usage:max"), "fullest replica")
        panels.append(Panel("KV cache in use", (usage,), unit="percentunit", limit=KV_CACHE_FULL))
    if signals.preemptions:
        panels.append(
            Panel("Preemptions a second", ((chosen.series("model:preemptions:rate5m"), "preemptions"),))
        )
    return tuple(panels)


def _replicas(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    ready = chosen.pods("kube_pod_status_ready", 'condition="true"')
    age = f"(time() - {chosen.pods('kube_pod_created')}) * on (pod) ({ready} == bool 0)"
    restarts = chosen.pods("kube_pod_container_status_restarts_total", 'container="server"')
    return (
        Panel(
            "Replicas",
            (
                (chosen.series("model:replicas_up:sum"), "answer"),
                (chosen.series("model:replicas_wanted:max"), "wanted"),
            ),
        ),
        Panel(
            "Age of replicas that are not ready",
            ((age, "{{pod}}"),),
            unit="s",
            limit=plan.startup.deadline,
            about=f"The plan expects {plan.startup.cold} s from a pending pod to the first answer.",
        ),
        Panel("Restarts in an hour", ((f"sum by (pod) (increase({restarts}[1h]))", "{{pod}}"),)),
    )


def _devices(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    if plan.serving.accelerator.vendor != "nvidia":
        cores = 'avg by (instance_id) (neuroncore_utilization_ratio{pod=~"neuron-monitor-.+"})'
        return (Panel("NeuronCore utilization, by node", ((cores, "{{instance_id}}"),), unit="percentunit"),)
    gpu = "{{pod}} GPU {{gpu}}"
    return (
        Panel(
            "GPU utilization",
            ((chosen.pods("DCGM_FI_DEV_GPU_UTIL"), gpu),),
            unit="percent",
            about="One request fills it: load is in the queue and the KV cache, not here.",
        ),
        Panel("GPU memory in use", ((chosen.pods("DCGM_FI_DEV_FB_USED"), gpu),), unit="decmbytes"),
        Panel("GPU power", ((chosen.pods("DCGM_FI_DEV_POWER_USAGE"), gpu),), unit="watt"),
    )


def _cost(chosen: Selection) -> tuple[Panel, ...]:
    return (
        Panel(
            "US dollars an hour", ((chosen.series("model:cost:usd_per_hour"), "cost"),), unit="currencyUSD"
        ),
        Panel(
            "US dollars a million generated tokens",
            ((chosen.series("model:cost:usd_per_million_tokens"), "cost"),),
            unit="currencyUSD",
        ),
        Panel("Accelerators held", ((chosen.series("model:accelerators:sum"), "accelerators"),)),
    )
