"""`modelyard plan`: what an environment will run, where, at what cost, and what could go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from modelyard.cli.cost import model_cost_json, plan_cost_json, plan_cost_lines, throughput_json
from modelyard.cli.environment_cost import (
    environment_cost_json,
    environment_cost_line,
    print_environment_cost,
)
from modelyard.cli.hub import HubOption, with_hub
from modelyard.cli.ledger_bar import has_colours, ledger_lines
from modelyard.cli.printing import (
    console,
    count,
    dollars,
    finding_json,
    print_findings,
    print_json,
    seconds,
    table,
)
from modelyard.cli.workspace import EnvironmentsOption, EnvOption, ModelsOption, Output, OutputOption
from modelyard.hardware import platform_facts
from modelyard.memory.throughput import Throughput
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.fixed_cost import environment_cost
from modelyard.project import ENVIRONMENTS, MODELS, load_project

_HELP = """Show what an environment runs: accelerators, memory, rollout, start-up, quota and cost.

\b
  modelyard plan --env prod
  modelyard plan --env prod --costs    what the environment costs besides its models, line by line
  modelyard plan --env dev --output json | jq .cost
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(plan)


def plan(
    env: EnvOption = "local",
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    hub: HubOption = False,
    costs: Annotated[
        bool, typer.Option("--costs", help="Show what the environment costs besides its models.")
    ] = False,
    output: OutputOption = Output.table,
) -> int:
    project = load_project(env, models, environments)
    if hub:
        project = replace(project, catalogue=with_hub(project.catalogue))
    planned = project.plan()
    if planned is None:
        if output is Output.json:
            print_json("Plan", environment=env, findings=[finding_json(f) for f in project.findings])
        else:
            print_findings(project.findings)
        return 1
    today = datetime.now(UTC).date()
    if output is Output.json:
        print_json("Plan", **plan_json(planned, today))
    elif costs:
        print_environment_cost(planned.environment.name, environment_cost(planned, today))
        return 0
    else:
        planned_names = {model.model.name for model in planned.models}
        _print_plan(planned, sorted(project.catalogue.models.keys() - planned_names), today)
    return 0 if planned.deployable else 1


def _print_plan(planned: Plan, left_out: Sequence[str], today: date) -> None:
    environment = planned.environment
    out = console()
    out.print(
        table(
            f"{environment.name}: {count(len(planned.models), 'model')}, account {environment.account}, {environment.region}",
            (
                "MODEL",
                "RUNS ON",
                "INSTANCE",
                "MAX LEN",
                "AT ONCE",
                "WEIGHTS",
                "KV CACHE",
                "REPLICAS",
                "ROLLOUT",
                "START",
                "$/h",
            ),
            (_row(model) for model in planned.models),
            right=("MAX LEN", "AT ONCE", "WEIGHTS", "KV CACHE", "$/h"),
        )
    )
    if left_out:
        out.print(
            f"Neither in the table nor in the sums, for the errors below: {', '.join(left_out)}.",
            soft_wrap=True,
        )
    for line in plan_cost_lines(planned, platform_facts().hours_per_month):
        out.print(line, soft_wrap=True)
    out.print(environment_cost_line(environment.name, environment_cost(planned, today)), soft_wrap=True)
    out.print(
        "WEIGHTS and KV CACHE are GiB of one GPU or NeuronCore; AT ONCE is how many requests of MAX LEN the cache holds.\n"
    )
    if planned.models:
        ledgers = [(model.name, model.serving.ledger) for model in planned.models]
        out.print(Text("\n").join(ledger_lines(ledgers, colours=has_colours(out))), soft_wrap=True)
        out.print()
    if planned.quotas:
        out.print(
            table(
                "vCPU quotas needed",
                ("CODE", "QUOTA", "NEEDED", "ACCOUNT HAS"),
                (
                    (
                        need.code,
                        need.name,
                        f"{need.needed_vcpu} ({need.reserved_vcpu} reserved)"
                        if need.reserved_vcpu
                        else str(need.needed_vcpu),
                        "not stated" if need.available is None else str(need.available),
                    )
                    for need in planned.quotas
                ),
                right=("NEEDED", "ACCOUNT HAS"),
            )
        )
    for item in planned.acknowledged:
        out.print(
            f"accepted {item.finding.code} {item.finding.subject}: {item.finding.message} ({item.reason})",
            soft_wrap=True,
        )
    print_findings(planned.findings)


def _row(model: ModelPlan) -> tuple[str, ...]:
    serving = model.serving
    replicas = model.model.replicas
    cost = model.cost
    price = (
        dollars(cost.floor)
        if cost.floor == cost.ceiling
        else f"{dollars(cost.floor)}-{dollars(cost.ceiling).removeprefix('$')}"
    )
    return (
        model.name,
        f"{serving.accelerator.name}:{serving.count}",
        model.placement.cheapest.name,
        str(serving.max_model_len),
        f"{serving.ledger.concurrency(serving.max_model_len):.1f}" if serving.keeps_cache else "-",
        f"{serving.ledger.weights.in_gib:.1f}",
        f"{serving.ledger.kv_cache.in_gib:.1f}" if serving.keeps_cache else "-",
        str(replicas.min) if replicas.min == replicas.max else f"{replicas.min}-{replicas.max}",
        model.rollout.strategy,
        seconds(model.startup.cold),
        price,
    )


def plan_json(planned: Plan, today: date) -> dict[str, Any]:
    """The plan as data; memory in GiB, money in US dollars per hour, times in seconds. `today` decides what
    the Kubernetes version costs."""
    return {
        "environment": planned.environment.name,
        "deployable": planned.deployable,
        "models": [model_json(model) for model in planned.models],
        "cost": {
            **plan_cost_json(planned),
            "environment": environment_cost_json(environment_cost(planned, today)),
        },
        "quotas": [
            {
                "code": n.code,
                "name": n.name,
                "neededVcpu": n.needed_vcpu,
                "reservedVcpu": n.reserved_vcpu,
                "availableVcpu": n.available,
            }
            for n in planned.quotas
        ],
        "acknowledged": [{**finding_json(a.finding), "reason": a.reason} for a in planned.acknowledged],
        "findings": [finding_json(finding) for finding in planned.findings],
    }


def model_json(model: ModelPlan, throughput: Throughput | None = None) -> dict[str, Any]:
    """One model's plan as data; `throughput` overrides the bound with a better estimate."""
    serving, ledger = model.serving, model.serving.ledger
    return {
        "name": model.name,
        "accelerator": serving.accelerator.name,
        "count": serving.count,
        "pool": model.placement.pool_name,
        "instanceTypes": [instance.name for instance in model.placement.instance_types],
        "engine": serving.release.engine,
        "engineVersion": serving.release.version,
        "image": serving.release.image,
        "tensorParallel": serving.tensor_parallel,
        "pipelineParallel": serving.topology.split.pipeline,
        "dataParallel": serving.topology.split.data,
        "expertParallel": serving.topology.split.expert,
        "podsPerReplica": serving.nodes,
        "pod": {
            "accelerators": model.pod.accelerators,
            "cpu": model.pod.cpu_milli / 1000,
            "memoryGiB": round(model.pod.memory.in_gib, 2),
            "shmGiB": round(model.pod.shm.in_gib, 2),
        },
        "maxModelLen": serving.max_model_len,
        "maxNumSeqs": serving.max_num_seqs,
        "maxNumBatchedTokens": serving.max_num_batched_tokens,
        "concurrency": round(ledger.concurrency(serving.max_model_len), 2),
        "memoryGiB": {
            "total": round(ledger.total.in_gib, 2),
            "budget": round(ledger.budget.in_gib, 2),
            "weights": round(ledger.weights.in_gib, 2),
            "adapters": round(ledger.adapters.in_gib, 2),
            "activation": round(ledger.activation.in_gib, 2),
            "nonTorch": round(ledger.non_torch.in_gib, 2),
            "cudaGraphs": round(ledger.cuda_graphs.in_gib, 2),
            "kvCache": round(ledger.kv_cache.in_gib, 2),
        },
        "replicas": {"min": model.model.replicas.min, "max": model.model.replicas.max},
        "rollout": {"strategy": model.rollout.strategy, "interrupts": model.rollout.interrupts},
        "startup": {"coldSeconds": model.startup.cold, "budgetSeconds": model.startup.budget},
        "cost": model_cost_json(model),
        "throughput": throughput_json(model, throughput or model.throughput),
    }
