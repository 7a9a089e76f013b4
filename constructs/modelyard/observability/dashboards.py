"""Grafana dashboards: fleet, pools, cost, and one per model. Thresholds are those of the alerts."""

from __future__ import annotations

from modelyard.hardware import accelerator_of, platform_facts
from modelyard.observability.alerts import KV_CACHE_FULL
from modelyard.observability.model_dashboard import model_dashboard
from modelyard.observability.panels import Panel, PanelRow, Variable, dashboard_json
from modelyard.planning import Plan


def dashboards(plan: Plan) -> dict[str, str]:
    """Every dashboard of an environment, as name to JSON."""
    boards = {"fleet": fleet(plan), "pools": pools(plan), "cost": cost(plan)}
    for model in plan.models:
        if model.model.observability.dashboard and not model.model.batch:
            boards[f"model-{model.name}"] = model_dashboard(model, plan)
    return boards


def fleet(plan: Plan) -> str:
    """All models at a glance: availability, latency, waiting requests."""
    environment = plan.environment
    of = f'namespace="{environment.namespace}", model=~"$model"'
    # Based on wanted replicas: without a Service, the model's own series are missing too.
    gone = (
        f"count(model:replicas_wanted:max{{{of}}} > 0 unless on (model, namespace) "
        f"model:replicas_up:sum{{{of}}} > 0) or vector(0)"
    )
    overview = (
        Panel(
            "Models without a replica",
            ((gone, ""),),
            limit=1,
            kind="stat",
            width=6,
            about="Models that should run and that nobody can scrape; alert ModelGone.",
        ),
        Panel("Replicas that answer", ((f"sum(model:replicas_up:sum{{{of}}})", ""),), kind="stat", width=6),
        Panel("Requests waiting", ((f"sum(model:requests_waiting:sum{{{of}}})", ""),), kind="stat", width=6),
        Panel(
            "Alerts that fire in the cluster",
            (('count(ALERTS{alertstate="firing", severity=~"critical|warning"}) or vector(0)', ""),),
            limit=1,
            kind="stat",
            width=6,
        ),
    )
    traffic = (
        Panel("Requests a second", ((f"model:requests:rate5m{{{of}}}", "{{model}}"),), unit="reqps"),
        Panel("Generated tokens a second", ((f"model:generated_tokens:rate5m{{{of}}}", "{{model}}"),)),
        Panel("Requests waiting, by model", ((f"model:requests_waiting:sum{{{of}}}", "{{model}}"),)),
    )
    latency = (
        Panel("Time to first token, p95", ((f"model:ttft_seconds:p95{{{of}}}", "{{model}}"),), unit="s"),
        Panel("Time between tokens, p95", ((f"model:itl_seconds:p95{{{of}}}", "{{model}}"),), unit="s"),
        Panel(
            "KV cache in use",
            ((f"model:kv_cache_usage:max{{{of}}}", "{{model}}"),),
            unit="percentunit",
            limit=KV_CACHE_FULL,
        ),
    )
    return dashboard_json(
        uid=f"modelyard-{environment.name}-fleet",
        title=f"Modelyard / {environment.name} / Fleet",
        about="All models of the environment. Click a model's own dashboard for the reasons.",
        variables=[
            Variable(
                "model",
                f'model:replicas_wanted:max{{namespace="{environment.namespace}"}}',
                "model",
                many=True,
            )
        ],
        rows=[
            PanelRow("Now", overview),
            PanelRow("Traffic", traffic),
            PanelRow("Latency and saturation", latency),
        ],
    )


def pools(plan: Plan) -> str:
    """Nodes: usage and limit of each pool, launches, devices."""
    environment, of = plan.environment, 'nodepool=~"$nodepool"'
    pending = f'sum(kube_pod_status_phase{{namespace="{environment.namespace}", phase="Pending"}})'
    capacity = (
        Panel(
            "Accelerators",
            (
                (f"pool:accelerators:sum{{{of}}}", "{{nodepool}}"),
                (f"pool:accelerators:limit{{{of}}}", "{{nodepool}} limit"),
            ),
        ),
        Panel("Pods that wait for a node", ((pending, "pending"),)),
        Panel(
            "Failed launches in a quarter of an hour",
            (
                (
                    'sum by (error) (increase(karpenter_cloudprovider_errors_total{method="Create"}[15m]))',
                    "{{error}}",
                ),
            ),
            limit=1,
        ),
    )
    launches = (
        Panel(
            "Nodes launched an hour",
            (
                (
                    f"sum by (nodepool) (increase(karpenter_nodeclaims_created_total{{{of}}}[1h]))",
                    "{{nodepool}}",
                ),
            ),
            width=12,
        ),
    )
    rows = [PanelRow("Capacity", capacity), PanelRow("Launches", launches)]
    if any(accelerator_of(p.accelerator).vendor == "nvidia" for p in environment.pools.values()):
        where = "{{Hostname}} GPU {{gpu}}"
        health = (
            Panel(
                "XID errors",
                (("max by (Hostname, gpu, xid) (DCGM_EXP_XID_ERRORS_COUNT)", where + " XID {{xid}}"),),
                limit=1,
            ),
            Panel(
                "Rows remapped",
                (("max by (Hostname, gpu) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS)", where),),
            ),
            Panel(
                "GPU temperature", (("max by (Hostname, gpu) (DCGM_FI_DEV_GPU_TEMP)", where),), unit="celsius"
            ),
        )
        rows.append(PanelRow("GPU health", health))
    return dashboard_json(
        uid=f"modelyard-{environment.name}-pools",
        title=f"Modelyard / {environment.name} / Pools",
        about="What the pools hold, what they may hold, and whether the devices are well.",
        variables=[Variable("nodepool", "pool:accelerators:limit", "nodepool", many=True)],
        rows=rows,
    )


def cost(plan: Plan) -> str:
    """Cost by model, by pool and per million tokens, with the plan's prices on the day of rendering."""
    environment = plan.environment
    of = f'namespace="{environment.namespace}"'
    models = (
        Panel(
            "US dollars an hour, by model",
            ((f"model:cost:usd_per_hour{{{of}}}", "{{model}}"),),
            unit="currencyUSD",
            width=12,
        ),
        Panel(
            "US dollars a million generated tokens",
            ((f"model:cost:usd_per_million_tokens{{{of}}}", "{{model}}"),),
            unit="currencyUSD",
            width=12,
        ),
    )
    shared = (
        Panel(
            "US dollars an hour, by pool",
            (("pool:cost:usd_per_hour", "{{nodepool}}"),),
            unit="currencyUSD",
            width=12,
        ),
        Panel(
            "Idle share of what pools cost",
            (
                (
                    f"1 - sum(model:cost:usd_per_hour{{{of}}}) / sum(pool:cost:usd_per_hour)",
                    "paid for, held by no model",
                ),
            ),
            unit="percentunit",
            width=12,
        ),
    )
    total = (
        Panel(
            "US dollars an hour",
            (("sum(pool:cost:usd_per_hour)", ""),),
            unit="currencyUSD",
            kind="stat",
            width=8,
        ),
        Panel(
            "A month at this rate",
            ((f"{platform_facts().hours_per_month:g} * sum(pool:cost:usd_per_hour)", ""),),
            unit="currencyUSD",
            kind="stat",
            width=8,
        ),
        Panel(
            "Held by models, US dollars an hour",
            ((f"sum(model:cost:usd_per_hour{{{of}}})", ""),),
            unit="currencyUSD",
            kind="stat",
            width=8,
        ),
    )
    return dashboard_json(
        uid=f"modelyard-{environment.name}-cost",
        title=f"Modelyard / {environment.name} / Cost",
        about="List or stated prices of the plan, not the bill: savings plans and spot may be lower.",
        rows=[PanelRow("Now", total), PanelRow("Models", models), PanelRow("Pools", shared)],
    )
