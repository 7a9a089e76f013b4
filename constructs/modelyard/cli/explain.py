"""`modelyard explain`: why a model runs as it does, or the meaning of a finding's code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated

import typer

from modelyard.cli.completion import models_and_codes
from modelyard.cli.cost import cost_facts, throughput_facts
from modelyard.cli.hub import HubOption, with_hub
from modelyard.cli.ledger_bar import has_colours, ledger_lines
from modelyard.cli.plan import model_json
from modelyard.cli.printing import (
    console,
    dollars,
    finding_json,
    print_findings,
    print_json,
    seconds,
    table,
)
from modelyard.cli.workspace import EnvironmentsOption, EnvOption, ModelsOption, Output, OutputOption
from modelyard.findings import CHECKS, Check, Finding, Severity
from modelyard.memory.aiconfigurator import estimate_throughput
from modelyard.memory.throughput import Throughput
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.quota import quota_needs
from modelyard.project import ENVIRONMENTS, MODELS, load_project
from modelyard.reading import closest
from modelyard.secret_values import shown

_HELP = """Explain a model (memory ledger, placement, rollout, start-up, cost, throughput) or a finding's code.

\b
  modelyard explain qwen3-32b-fp8 --env prod
  modelyard explain KV001
"""


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(explain)


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|CODE",
            help="Name of a model, or code of a finding.",
            autocompletion=models_and_codes,
        ),
    ],
    env: EnvOption = "local",
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    checks: Annotated[
        bool, typer.Option("--checks", help="List the codes of checks that found nothing.")
    ] = False,
    hub: HubOption = False,
    output: OutputOption = Output.table,
) -> int:
    if (check := CHECKS.get(what.upper())) is not None:
        _explain_check(check, output)
        return 0
    project = load_project(env, models, environments)
    if hub:
        project = replace(project, catalogue=with_hub(project.catalogue))
    planned = project.plan()
    if what not in project.catalogue.models:
        raise typer.BadParameter(_unknown(what, project.catalogue.models))
    if planned is None:
        print_findings(project.findings)
        return 1
    file = project.catalogue.sources[what].file
    about = [
        f
        for f in planned.findings
        if f.subject == what or (f.location is not None and f.location.file == file)
    ]
    model = next((model for model in planned.models if model.name == what), None)
    if output is Output.json:
        print_json(
            "Explanation",
            environment=env,
            model=model_json(model, estimate_throughput(model.serving)) if model else None,
            rejectedInstanceTypes=[vars(r) for r in model.placement.rejections] if model else [],
            findings=[finding_json(finding) for finding in about],
        )
    else:
        if model:
            _explain_model(model, planned, about, estimate_throughput(model.serving), checks=checks)
        print_findings(about)
    return 1 if any(finding.level is Severity.ERROR for finding in about) else 0


def _unknown(what: str, models: Iterable[str]) -> str:
    names = sorted(models)
    near = closest(what, names) or closest(what.upper(), CHECKS)
    if near:
        return f"no model or code {shown(what)}; did you mean '{near[0]}'?"
    return f"no model or code {shown(what)}; models are {', '.join(names) or 'none'}, codes are such as KV001"


def _explain_check(check: Check, output: Output) -> None:
    if output is Output.json:
        print_json("Check", **vars(check))
        return
    out = console()
    out.print(f"{check.code} ({check.severity}): {check.title}\n", style="bold")
    out.print(f"{check.cause}\n\nFix: {check.fix}", soft_wrap=True)


def _explain_model(
    model: ModelPlan, planned: Plan, about: list[Finding], throughput: Throughput, *, checks: bool
) -> None:
    out = console()
    serving, ledger, placement = model.serving, model.serving.ledger, model.placement
    arch = serving.arch
    out.print(f"{model.name} in {planned.environment.name}\n", style="bold")
    per = {"nvidia": "one GPU", "aws": "one NeuronCore", "cpu": "a replica"}[serving.accelerator.vendor]
    need = ledger.kv_need(serving.max_model_len)
    spent = [
        ("- weights", ledger.weights, _weights_note(model)),
        ("- adapters", ledger.adapters, f"{len(model.model.adapters)} LoRA slots"),
        (
            "- peak activation",
            ledger.activation,
            f"{serving.max_num_batched_tokens} tokens, {serving.max_num_seqs} sequences a batch",
        ),
        ("- outside torch", ledger.non_torch, "driver and NCCL buffers"),
        ("- CUDA graphs", ledger.graphs_in_budget, f"{arch.layers} layers"),
    ]
    tokens = (
        f"{ledger.kv_tokens(serving.max_model_len):,} tokens"
        if serving.keeps_cache
        else "not used: an encoder keeps none"
    )
    if (cap := serving.release.memory.kv_cap_fraction) is not None:
        tokens += f"; the engine takes no more than {cap:.0%} of the budget"
    at_once = f"{serving.max_model_len} tokens; {ledger.concurrency(serving.max_model_len):.1f} fit at once"
    rows = [
        (
            f"memory of {per}",
            str(ledger.total),
            f"{serving.accelerator.product}, {serving.accelerator.usable_source}",
        ),
        ("budget", str(ledger.budget), f"utilization {ledger.request.gpu_memory_utilization:g}"),
        *((name, str(amount), note) for name, amount, note in spent if amount.in_bytes),
        ("= KV cache", str(ledger.kv_cache), tokens),
        *([("one full request", str(need), at_once)] if serving.keeps_cache else []),
    ]
    out.print(table("Memory", ("", "AMOUNT", "FROM"), rows, right=("AMOUNT",)))
    for line in ledger_lines([(per, ledger)], colours=has_colours(out)):
        out.print(line, soft_wrap=True)
    out.print()
    out.print(
        table(
            f"Instance types of pool {placement.pool_name}",
            ("TYPE", "$/h", "VERDICT"),
            [
                *(
                    (i.name, dollars(planned.prices.of(i).usd_per_hour), "admits the pod")
                    for i in placement.instance_types
                ),
                *((r.instance_type, "", r.reason) for r in placement.rejections),
            ],
            right=("$/h",),
        )
    )
    zones = planned.environment.pool_zones(placement.pool)
    facts = [
        (
            "engine",
            f"{serving.release.engine} {serving.release.version}, {serving.release.image_for(cpu=serving.on_cpu)}",
        ),
        ("architecture", f"{arch.architecture}: {arch.source}"),
        ("pod", _pod_note(model)),
        ("zones", f"{', '.join(zones)}; {'replicas spread over them' if model.zonal else 'not spread'}"),
        ("rollout", _rollout_note(model)),
        *_start_notes(model),
        ("drain", f"{model.model.drain} s for running requests"),
        *(("quota", note) for note in _quota_notes(model, planned)),
        *cost_facts(model),
        *throughput_facts(model, throughput),
    ]
    for name, text in facts:
        out.print(f"{name:<16} {text}", soft_wrap=True)
    silent = sorted(set(CHECKS) - {finding.code for finding in about})
    listed = f": {', '.join(silent)}" if checks else "; --checks lists them"
    out.print(f"{'checks':<16} {len(silent)} of {len(CHECKS)} found nothing{listed}\n", soft_wrap=True)


def _pod_note(model: ModelPlan) -> str:
    pod, kind = model.pod, model.serving.accelerator
    nodes = model.serving.nodes
    parts = [
        *([f"{pod.accelerators} {kind.resource}"] if kind.vendor != "cpu" else []),
        f"{pod.cpu_milli / 1000:g} CPU",
        f"{pod.memory} of which {pod.shm} shared memory",
    ]
    return f"{', '.join(parts)}{f'; {nodes} such pods, on a node each, are one replica' if nodes > 1 else ''}"


def _start_notes(model: ModelPlan) -> Iterator[tuple[str, str]]:
    start = model.startup
    parts = (
        f"node {seconds(start.node)}, image {seconds(start.image)}, weights {seconds(start.load)}, "
        f"compilation {seconds(start.compile)}; first download {seconds(start.fetch)}"
    )
    yield "cold start", f"about {seconds(start.cold)}: {parts}"
    yield (
        "start-up budget",
        f"{seconds(start.budget)} for weights and compilation, from the start of the container; then it is restarted",
    )


def _quota_notes(model: ModelPlan, planned: Plan) -> Iterator[str]:
    """The model's largest usage of each quota, including a rollout, next to the environment's."""
    total = {need.code: need for need in planned.quotas}
    nodes = model.cost.nodes_ceiling + model.rollout.max_surge
    for own in quota_needs([(model.placement, nodes)], planned.environment.quotas):
        needed = total[own.code].needed_vcpu if own.code in total else own.needed_vcpu
        holds = "not stated" if own.available is None else f"{own.available} vCPU"
        yield f"{own.code} {own.name}: {own.needed_vcpu} of the environment's {needed} vCPU; the account's is {holds}"


def _weights_note(model: ModelPlan) -> str:
    serving = model.serving
    stored = f"{serving.arch.quantization.method}" if serving.arch.quantization else "16 bit"
    split = f", split over {serving.tensor_parallel}" if serving.tensor_parallel > 1 else ""
    stages = serving.topology.split.pipeline
    return f"{stored}{split}{f', in {stages} pipeline stages' if stages > 1 else ''}"


def _rollout_note(model: ModelPlan) -> str:
    if model.rollout.strategy == "surge":
        return "surge: the new replica starts before the old one stops"
    away = (
        f"; the endpoint is away for about {seconds(model.startup.cold)}" if model.rollout.interrupts else ""
    )
    return f"in-place: the old replica stops first, because the pool has no spare accelerators{away}"
