"""Grafana dashboards: the fleet, each model, the pools, the cost. Thresholds are those of the alerts."""

from __future__ import annotations

import hashlib

from modelyard.hardware import accelerators
from modelyard.observability.alerts import KV_CACHE_FULL, most_waiting
from modelyard.observability.panels import Panel, Row, Variable, dashboard_json
from modelyard.observability.platform_alerts import CACHE_FULL
from modelyard.observability.selection import Selection, metrics_for
from modelyard.planning import ModelPlan, Plan


def dashboards(plan: Plan) -> dict[str, str]:
    """Name to JSON, for every dashboard of an environment."""
    boards = {"fleet": fleet(plan), "pools": pools(plan), "cost": cost(plan)}
    for model in plan.models:
        if model.model.observability.dashboard:
            boards[f"model-{model.name}"] = model_dashboard(model, plan)
    return boards


def fleet(plan: Plan) -> str:
    """Every model at a glance: is it there, is it fast, does anybody wait."""
    environment = plan.environment
    of = f'namespace="{environment.namespace}", model=~"$model"'
    overview = (
        Panel("Models without a replica", (("count(model:replicas_up:sum == 0) or vector(0)", ""),),
              limit=1, kind="stat", width=6, about="Models whose every scrape fails; alert ModelGone."),
        Panel("Replicas that answer", ((f"sum(model:replicas_up:sum{{{of}}})", ""),), kind="stat", width=6),
        Panel("Requests waiting", ((f"sum(model:requests_waiting:sum{{{of}}})", ""),), kind="stat", width=6),
        Panel("Alerts that fire", (('count(ALERTS{alertstate="firing", severity=~"critical|warning"}) or vector(0)', ""),),
              limit=1, kind="stat", width=6),
    )  # fmt: skip
    traffic = (
        Panel("Requests a second", ((f"model:requests:rate5m{{{of}}}", "{{model}}"),), unit="reqps"),
        Panel("Generated tokens a second", ((f"model:generated_tokens:rate5m{{{of}}}", "{{model}}"),)),
        Panel("Requests waiting", ((f"model:requests_waiting:sum{{{of}}}", "{{model}}"),)),
    )
    latency = (
        Panel("Time to first token, p95", ((f"model:ttft_seconds:p95{{{of}}}", "{{model}}"),), unit="s"),
        Panel("Time between tokens, p95", ((f"model:itl_seconds:p95{{{of}}}", "{{model}}"),), unit="s"),
        Panel("KV cache in use", ((f"model:kv_cache_usage:max{{{of}}}", "{{model}}"),),
              unit="percentunit", limit=KV_CACHE_FULL),
    )  # fmt: skip
    return dashboard_json(
        uid=f"modelyard-{environment.name}-fleet",
        title=f"Modelyard / {environment.name} / Fleet",
        about="All models of the environment. Click a model's own dashboard for the reasons.",
        variables=[Variable("model", f'model:replicas_up:sum{{namespace="{environment.namespace}"}}', "model", many=True)],
        rows=[Row("Now", overview), Row("Traffic", traffic), Row("Latency and saturation", latency)],
    )  # fmt: skip


def model_dashboard(plan: ModelPlan, whole: Plan) -> str:
    """One model: traffic, latency, queue and KV cache, accelerators, start-up, cost."""
    environment = whole.environment
    chosen = Selection(plan.name, environment.namespace)
    rows = [
        Row("Traffic", _traffic(plan, chosen)),
        Row("Latency", _latency(plan, chosen)),
        Row("Queue and KV cache", _saturation(plan, chosen)),
        Row("Replicas and start-up", _replicas(plan, chosen)),
        Row("Accelerators", _devices(plan, chosen)),
    ]
    if plan.cost.node_price is not None:
        rows.append(Row("Cost", _cost(chosen)))
    return dashboard_json(
        uid=_uid(f"modelyard-{environment.name}-{plan.name}"),
        title=f"Modelyard / {environment.name} / {plan.name}",
        about=f"{plan.model.model.uri} on {plan.serving.accelerator.name}:{plan.serving.count}",
        rows=[row for row in rows if row.panels],
    )


def _uid(name: str) -> str:
    """Grafana takes 40 characters."""
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
        waiting = f"{chosen.series('model:requests_waiting:sum')} / on (model, namespace) ({chosen.series('model:replicas_up:sum')} > 0)"
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
        Panel("Replicas", ((chosen.series("model:replicas_up:sum"), "answer"), (chosen.series("model:replicas_wanted:max"), "wanted"))),
        Panel("Age of replicas that are not ready", ((age, "{{pod}}"),), unit="s", limit=plan.startup.deadline,
              about=f"The plan expects {plan.startup.cold} s from a pending pod to the first answer."),
        Panel("Restarts in an hour", ((f"sum by (pod) (increase({restarts}[1h]))", "{{pod}}"),)),
    )  # fmt: skip


def _devices(plan: ModelPlan, chosen: Selection) -> tuple[Panel, ...]:
    if plan.serving.accelerator.vendor != "nvidia":
        cores = 'avg by (instance_id) (neuroncore_utilization_ratio{pod=~"neuron-monitor-.+"})'
        return (Panel("NeuronCore utilization, by node", ((cores, "{{instance_id}}"),), unit="percentunit"),)
    gpu = "{{pod}} GPU {{gpu}}"
    return (
        Panel("GPU utilization", ((chosen.pods("DCGM_FI_DEV_GPU_UTIL"), gpu),), unit="percent",
              about="One request fills it: load is in the queue and the KV cache, not here."),
        Panel("GPU memory in use", ((chosen.pods("DCGM_FI_DEV_FB_USED"), gpu),), unit="decmbytes"),
        Panel("GPU power", ((chosen.pods("DCGM_FI_DEV_POWER_USAGE"), gpu),), unit="watt"),
    )  # fmt: skip


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


def pools(plan: Plan) -> str:
    """Nodes: what each pool holds of what it may, launches, the devices, the cache."""
    environment, of = plan.environment, 'nodepool=~"$nodepool"'
    claim = f'namespace="{environment.namespace}", persistentvolumeclaim="model-cache"'
    pending = f'sum(kube_pod_status_phase{{namespace="{environment.namespace}", phase="Pending"}})'
    capacity = (
        Panel("Accelerators", ((f"pool:accelerators:sum{{{of}}}", "{{nodepool}}"), (f"pool:accelerators:limit{{{of}}}", "{{nodepool}} limit"))),
        Panel("Pods that wait for a node", ((pending, "pending"),)),
        Panel("Failed launches in a quarter of an hour", (('sum by (error) (increase(karpenter_cloudprovider_errors_total{method="Create"}[15m]))', "{{error}}"),), limit=1),
    )  # fmt: skip
    used = f"max(kubelet_volume_stats_used_bytes{{{claim}}})"
    storage = (
        Panel("Model cache in use", ((used, "used"),), unit="bytes", limit=CACHE_FULL * environment.cache.size_gib * 2**30, width=12),
        Panel("Nodes launched an hour", ((f"sum by (nodepool) (increase(karpenter_nodeclaims_created_total{{{of}}}[1h]))", "{{nodepool}}"),), width=12),
    )  # fmt: skip
    rows = [Row("Capacity", capacity), Row("Storage and launches", storage)]
    if any(accelerators()[p.accelerator].vendor == "nvidia" for p in environment.pools.values()):
        where = "{{Hostname}} GPU {{gpu}}"
        health = (
            Panel("XID errors", (("max by (Hostname, gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT)", where + " XID {{xid}}"),), limit=1),
            Panel("Rows remapped", (("max by (Hostname, gpu) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS)", where),)),
            Panel("GPU temperature", (("max by (Hostname, gpu) (DCGM_FI_DEV_GPU_TEMP)", where),), unit="celsius"),
        )  # fmt: skip
        rows.append(Row("GPU health", health))
    return dashboard_json(
        uid=f"modelyard-{environment.name}-pools",
        title=f"Modelyard / {environment.name} / Pools",
        about="What the pools hold, what they may hold, and whether the devices are well.",
        variables=[Variable("nodepool", "pool:accelerators:limit", "nodepool", many=True)],
        rows=rows,
    )


def cost(plan: Plan) -> str:
    """Money: by model, by pool, by million tokens. Prices are the plan's, of the day it was rendered."""
    environment = plan.environment
    of = f'namespace="{environment.namespace}"'
    models = (
        Panel("US dollars an hour, by model", ((f"model:cost:usd_per_hour{{{of}}}", "{{model}}"),), unit="currencyUSD", width=12),
        Panel("US dollars a million generated tokens", ((f"model:cost:usd_per_million_tokens{{{of}}}", "{{model}}"),), unit="currencyUSD", width=12),
    )  # fmt: skip
    shared = (
        Panel("US dollars an hour, by pool", (("pool:cost:usd_per_hour", "{{nodepool}}"),), unit="currencyUSD", width=12),
        Panel("Idle share of what pools cost", ((f"1 - sum(model:cost:usd_per_hour{{{of}}}) / sum(pool:cost:usd_per_hour)", "paid for, held by no model"),), unit="percentunit", width=12),
    )  # fmt: skip
    total = (
        Panel("US dollars an hour", (("sum(pool:cost:usd_per_hour)", ""),), unit="currencyUSD", kind="stat", width=8),
        Panel("A month at this rate", (("730 * sum(pool:cost:usd_per_hour)", ""),), unit="currencyUSD", kind="stat", width=8),
        Panel("Held by models, US dollars an hour", ((f"sum(model:cost:usd_per_hour{{{of}}})", ""),), unit="currencyUSD", kind="stat", width=8),
    )  # fmt: skip
    return dashboard_json(
        uid=f"modelyard-{environment.name}-cost",
        title=f"Modelyard / {environment.name} / Cost",
        about="List or stated prices of the plan, not the bill: savings plans and spot may be lower.",
        rows=[Row("Now", total), Row("Models", models), Row("Pools", shared)],
    )
