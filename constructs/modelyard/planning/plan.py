"""The plan of an environment: every model's settings, place, rollout, start-up and cost, and every problem found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modelyard.engines import parsers_for
from modelyard.engines.settings import KvRole
from modelyard.findings import Finding
from modelyard.planning.choice import Choice, choice_cost, choose
from modelyard.planning.environment_checks import environment_findings
from modelyard.planning.fit_checks import waste_findings
from modelyard.planning.judgement import judge, located
from modelyard.planning.model_checks import (
    advice,
    exposure_findings,
    flag_findings,
    likely_release,
    open_endpoint_findings,
    parser_findings,
    reference_findings,
    scaling_findings,
    signal_findings,
    stream_findings,
    tracing_findings,
)
from modelyard.planning.pool_checks import (
    Occupancy,
    limit_findings,
    occupancies,
    offering_findings,
    quota_finding,
)
from modelyard.planning.quota import quota_needs
from modelyard.planning.records import ModelPlan, Plan
from modelyard.planning.rollout import plan_rollout
from modelyard.planning.startup import plan_startup
from modelyard.planning.team_checks import team_findings
from modelyard.spec.environment import Environment, Override
from modelyard.spec.governance import OfficeHours
from modelyard.spec.loading import Catalogue
from modelyard.spec.model import Model
from modelyard.spec.operation import Hours
from modelyard.spec.yaml_source import Source

HF_TOKEN = "hf-token"
"""Logical name of the secret that holds the Hugging Face token."""


def plan(
    catalogue: Catalogue,
    environment: Environment,
    findings: Iterable[Finding] = (),
    source: Source | None = None,
) -> Plan:
    """Plan every model of `catalogue`.

    `findings` of the loading are judged with the plan's own; `source` is the environment's file, for positions.
    """
    problems = [*findings, *environment_findings(environment, catalogue)]
    choices: dict[str, Choice] = {}
    models = {
        name: _overridden(model, environment.overrides.get(name)) for name, model in catalogue.models.items()
    }
    workloads = {
        name: (in_office_hours(model, environment.office_hours), role)
        for name, (model, role) in sorted(_workloads(models))
    }
    for name, (model, role) in workloads.items():
        if role != "prefill":
            problems += [
                *reference_findings(model, environment),
                *stream_findings(model, environment),
                *exposure_findings(model, environment),
                *open_endpoint_findings(model),
                *scaling_findings(model),
            ]
        chosen = choose(model, environment)
        if isinstance(chosen, Choice):
            choices[name] = chosen
            if role != "prefill":
                problems += [
                    *flag_findings(model, chosen.serving.release),
                    *parser_findings(model, chosen.serving),
                    *signal_findings(model, chosen.serving.release),
                ]
        elif role != "prefill":
            problems += [*chosen, *flag_findings(model, likely_release(model))]
    occupied = occupancies(choices, {name: model.replicas.max for name, (model, _) in workloads.items()})
    plans = []
    for name, choice in choices.items():
        model, role = workloads[name]
        planned = _complete(model, role, choice, environment, occupied[choice.placement.pool_name])
        if isinstance(planned, ModelPlan):
            plans.append(planned)
            if role != "prefill":
                problems += [*advice(planned), *tracing_findings(planned, environment)]
        else:
            problems.append(planned)
    problems += [
        *limit_findings(occupied, environment),
        *offering_findings(plans, environment, problems),
        *waste_findings(plans),
        *team_findings(plans, environment),
    ]
    quotas = quota_needs(
        ((p.placement, p.cost.nodes_ceiling + p.rollout.max_surge * p.serving.nodes) for p in plans),
        environment.quotas,
    )
    problems += [quota_finding(need, environment) for need in quotas if need.short]
    placed = [located(finding, catalogue, source) for finding in problems]
    open_findings, acknowledged = judge(placed, environment)
    return Plan(environment, tuple(plans), quotas, open_findings, acknowledged)


def _workloads(models: Mapping[str, Model]) -> Iterator[tuple[str, tuple[Model, KvRole]]]:
    """Name of every set of like replicas to its model, with these replicas, and its part in a request."""
    for name, model in models.items():
        if model.disaggregation is None:
            yield name, (model, "both")
            continue
        yield name, (model, "decode")
        yield (
            f"{name}-prefill",
            (
                model.model_copy(update={"replicas": model.disaggregation.prefill}),
                "prefill",
            ),
        )


def _overridden(model: Model, override: Override | None) -> Model:
    if override is None:
        return model
    changes = {
        name: value for name in Override.model_fields if (value := getattr(override, name)) is not None
    }
    return model.model_copy(update=changes)


def in_office_hours(model: Model, hours: OfficeHours | None) -> Model:
    """`model` with no replica outside of `hours`; a batch runs when it is told to."""
    if hours is None or model.batch:
        return model
    kept = Hours(
        start=hours.start, end=hours.end, timezone=hours.timezone, replicas=max(1, model.replicas.min)
    )
    scaling = model.scaling.model_copy(update={"schedule": (*model.scaling.schedule, kept)})
    replicas = model.replicas.model_copy(update={"min": 0})
    return model.model_copy(update={"replicas": replicas, "scaling": scaling})


def _complete(
    model: Model, role: KvRole, choice: Choice, environment: Environment, occupancy: Occupancy
) -> ModelPlan | Finding:
    serving, pool = choice.serving, choice.placement.pool
    surge_limit = occupancy.surge_limits[choice.kind]
    rollout = plan_rollout(
        wanted=model.rollout.strategy,
        replicas=model.replicas.min,
        limit=pool.limit,
        surge_limit=surge_limit,
    )
    if rollout is None:
        return Finding(
            "ROLL001",
            f"surge needs a limit of {surge_limit} {serving.accelerator.name} in pool {choice.placement.pool_name}, in "
            f"whole nodes, got {pool.limit}",
            f"use rollout auto or in-place, or raise the pool's limit to {surge_limit}",
            subject=model.name,
            field=("rollout",),
        )
    gated = HF_TOKEN if serving.arch.gated and model.model.scheme == "hf" else None
    token = model.model.auth or (HF_TOKEN if HF_TOKEN in environment.secrets else gated)
    if gated and token not in environment.secrets:
        return Finding(
            "HF001",
            f"{model.model.repository} is gated and environment {environment.name} maps no '{token}' secret",
            f"accept the licence at Hugging Face and add '{token}' under the environment's secrets",
            subject=model.name,
            field=("model",),
        )
    return ModelPlan(
        model=model,
        serving=serving,
        placement=choice.placement,
        pod=choice.pod,
        rollout=rollout,
        startup=plan_startup(serving, environment.cache),
        cost=choice_cost(choice, model, environment),
        parsers=parsers_for(serving.arch.model_id, serving.arch.model_type, serving.release.engine),
        role=role,
        token_secret=token if model.model.scheme == "hf" else None,
    )
