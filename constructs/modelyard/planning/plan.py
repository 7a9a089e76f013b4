"""The plan of an environment: every model's settings, place, rollout, start-up and cost, and every problem found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from modelyard.engines import Parsers, Release, check_flags, newest_release, parsers_for
from modelyard.findings import Finding, Severity
from modelyard.hardware import accelerators
from modelyard.planning.choice import Choice, choice_cost, choose
from modelyard.planning.cost import Cost
from modelyard.planning.environment_checks import environment_findings
from modelyard.planning.placement import Placement, PodRequest
from modelyard.planning.quota import QuotaNeed, quota_needs
from modelyard.planning.rollout import Rollout, plan_rollout
from modelyard.planning.serving import Serving, engine_for
from modelyard.planning.startup import LoadStrategy, StartupPlan, load_strategy, plan_startup
from modelyard.spec.environment import Environment, Override
from modelyard.spec.loading import Catalogue
from modelyard.spec.model import Model
from modelyard.spec.yaml_source import Source

HF_TOKEN = "hf-token"
"""Logical name of the secret that holds the Hugging Face token."""


@dataclass(frozen=True)
class ModelPlan:
    """All that is decided for one model in one environment. `model` has the environment's overrides applied."""

    model: Model
    serving: Serving
    placement: Placement
    pod: PodRequest
    rollout: Rollout
    startup: StartupPlan
    cost: Cost
    parsers: Parsers
    token_secret: str | None

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def load_strategy(self) -> LoadStrategy:
        """How the engine reads the checkpoint from the shared cache."""
        return load_strategy(self.serving, self.placement, self.pod)

    @property
    def zonal(self) -> bool:
        """Whether replicas are spread over zones."""
        return self.model.availability != "single" and self.model.replicas.max > 1


@dataclass(frozen=True)
class Acknowledged:
    """A warning that the environment accepts."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Plan:
    """The plan of one environment; deployable when no finding is an error."""

    environment: Environment
    models: tuple[ModelPlan, ...]
    quotas: tuple[QuotaNeed, ...]
    findings: tuple[Finding, ...]
    acknowledged: tuple[Acknowledged, ...] = ()

    @property
    def deployable(self) -> bool:
        return all(finding.level is not Severity.ERROR for finding in self.findings)

    @property
    def floor(self) -> float:
        """US dollars an hour at the least, over the models whose price is known."""
        return sum(model.cost.floor or 0 for model in self.models)

    @property
    def ceiling(self) -> float:
        """US dollars an hour at the most, over the models whose price is known."""
        return sum(model.cost.ceiling or 0 for model in self.models)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models on types without a public price: the sums leave them out."""
        return tuple(
            model.name for model in self.models if model.cost.floor is None or model.cost.ceiling is None
        )


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
    for name, model in sorted(models.items()):
        problems += _reference_findings(model, environment)
        chosen = choose(model, environment)
        if isinstance(chosen, Choice):
            choices[name] = chosen
            problems += [
                *_flag_findings(model, chosen.serving.release),
                *_parser_findings(model, chosen.serving),
            ]
        else:
            problems += [*chosen, *_flag_findings(model, _likely_release(model))]
    headroom = {pool: _headroom(pool, models, choices, environment) for pool in environment.pools}
    plans = []
    for name, choice in choices.items():
        planned = _complete(models[name], choice, environment, headroom[choice.placement.pool_name])
        if isinstance(planned, ModelPlan):
            plans.append(planned)
            problems += _advice(planned, environment, [c for n, c in choices.items() if n != name])
        else:
            problems.append(planned)
    problems += _limit_findings(headroom, models, choices, environment)
    quotas = quota_needs(
        ((p.placement, p.cost.nodes_ceiling + p.rollout.max_surge) for p in plans), environment.quotas
    )
    problems += [_quota_finding(need, environment) for need in quotas if need.short]
    located = [_located(finding, catalogue, source) for finding in problems]
    open_findings, acknowledged = _judge(located, environment)
    return Plan(environment, tuple(plans), quotas, open_findings, acknowledged)


def _overridden(model: Model, override: Override | None) -> Model:
    if override is None:
        return model
    changes = {
        name: value for name in Override.model_fields if (value := getattr(override, name)) is not None
    }
    return model.model_copy(update=changes)


def _reference_findings(model: Model, environment: Environment) -> Iterator[Finding]:
    for field, secret in (("model", "auth"), model.model.auth), (("access", "apiKey"), model.access.api_key):
        if secret and secret not in environment.secrets:
            yield Finding(
                "ENV002",
                f"secret '{secret}' is not mapped in environment {environment.name}",
                f"add it under secrets; known are {', '.join(environment.secrets) or 'none'}",
                subject=model.name,
                field=field,
            )


def _likely_release(model: Model) -> Release:
    """The release whose flags a model that cannot run is checked against, so that all problems show in one run."""
    accelerator = accelerators().get(model.accelerator.type)
    found = engine_for(model, accelerator) if accelerator else None
    return found if isinstance(found, Release) else newest_release("vllm")


def _flag_findings(model: Model, release: Release) -> Iterator[Finding]:
    for problem in check_flags(model.engine.args, release):
        yield Finding(
            problem.code,
            problem.message,
            problem.fix,
            subject=model.name,
            field=("engine", "args", problem.name),
        )


def _parser_findings(model: Model, serving: Serving) -> Iterator[Finding]:
    parsers = parsers_for(serving.arch.model_id, serving.arch.model_type)
    for wanted, parser, feature in (
        (model.features.tools, parsers.tools, "tools"),
        (model.features.reasoning, parsers.reasoning, "reasoning"),
    ):
        if wanted and not parser:
            yield Finding(
                "ENG001",
                f"no {feature} parser is known for {serving.arch.model_id}",
                f"set features.{feature} to false",
                subject=model.name,
                field=("features", feature),
            )


def _headroom(
    pool: str, models: dict[str, Model], choices: dict[str, Choice], environment: Environment
) -> int:
    """Accelerators that the pool's limit leaves when every model runs all its replicas; negative when too few."""
    asked = sum(
        models[name].replicas.max * choice.serving.count
        for name, choice in choices.items()
        if choice.placement.pool_name == pool
    )
    return environment.pools[pool].limit - asked


def _complete(model: Model, choice: Choice, environment: Environment, headroom: int) -> ModelPlan | Finding:
    serving = choice.serving
    rollout = plan_rollout(
        wanted=model.rollout.strategy,
        replicas=max(1, model.replicas.min),
        accelerators=serving.count,
        headroom=headroom,
    )
    if rollout is None:
        return Finding(
            "ROLL001",
            f"surge needs {serving.count} spare {serving.accelerator.name} in pool {choice.placement.pool_name}, "
            f"{max(0, headroom)} left of {choice.placement.pool.limit}",
            "use rollout auto or in-place, or raise the pool's limit",
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
        startup=plan_startup(serving, model.startup.budget),
        cost=choice_cost(choice, model, environment),
        parsers=parsers_for(serving.arch.model_id, serving.arch.model_type),
        token_secret=token if model.model.scheme == "hf" else None,
    )


def _advice(planned: ModelPlan, environment: Environment, others: list[Choice]) -> Iterator[Finding]:
    """Warnings about one model that can run."""
    model, placement = planned.model, planned.placement
    if model.replicas.min == 1 and model.availability is None:
        yield Finding(
            "AVAIL001",
            "one replica is an outage at every disruption",
            "use two replicas, or state availability: single",
            subject=model.name,
            field=("replicas",),
        )
    if planned.rollout.interrupts:
        yield Finding(
            "ROLL002",
            f"a rollout stops the only replica for about {planned.startup.cold // 60} min: pool "
            f"{placement.pool_name} has no spare {planned.serving.accelerator.name}",
            f"raise its limit by {planned.serving.count}, or run two replicas",
            subject=model.name,
            field=("replicas",),
        )
    idle = planned.cost.idle_accelerators
    tier = placement.cheapest.accelerator_count
    filled = sum(
        max(1, other.serving.model.replicas.min) * other.serving.count
        for other in others
        if other.placement.pool_name == placement.pool_name
        and other.placement.cheapest.accelerator_count == tier
    )
    if idle > filled:
        yield Finding(
            "CAP004",
            f"{idle - filled} of {planned.cost.nodes_floor * tier} {planned.serving.accelerator.name} are paid for and "
            f"idle on {planned.cost.nodes_floor} × {placement.cheapest.name}",
            f"use {tier} a replica, "
            + ("state availability: single so that replicas share a node, " if planned.zonal else "")
            + "or add models to the pool",
            subject=model.name,
            field=("accelerator",),
        )
    if model.startup.budget and model.startup.budget < planned.startup.load + planned.startup.compile:
        yield Finding(
            "LOAD001",
            f"startup budget {model.startup.budget} s is below the estimate of "
            f"{planned.startup.load + planned.startup.compile} s",
            "use auto, or a longer budget",
            subject=model.name,
            field=("startup", "budget"),
        )
    if "spot" in placement.pool.capacity and "on-demand" not in placement.pool.capacity:
        yield Finding(
            "CAP007",
            f"pool {placement.pool_name} is spot alone; loading takes about {planned.startup.cold // 60} min, the "
            "notice two",
            "add on-demand to the pool's capacity",
            subject=model.name,
            field=("accelerator",),
        )


def _limit_findings(
    headroom: dict[str, int], models: dict[str, Model], choices: dict[str, Choice], environment: Environment
) -> Iterator[Finding]:
    for pool, room in headroom.items():
        if room >= 0:
            continue
        asked: defaultdict[str, int] = defaultdict(int)
        for name, choice in choices.items():
            if choice.placement.pool_name == pool:
                asked[name] += models[name].replicas.max * choice.serving.count
        limit = environment.pools[pool].limit
        yield Finding(
            "CAP002",
            f"pool {pool} allows {limit} {environment.pools[pool].accelerator}, models can ask for {limit - room}: "
            + ", ".join(f"{name} {count}" for name, count in sorted(asked.items())),
            f"raise its limit to {limit - room}, or lower replicas",
            subject=f"environment {environment.name}",
            field=("pools", pool, "limit"),
        )


def _quota_finding(need: QuotaNeed, environment: Environment) -> Finding:
    return Finding(
        "QUOTA001",
        f"{need.name} ({need.code}): {need.needed_vcpu} vCPU needed, quota {need.available}",
        f"request {need.needed_vcpu} in Service Quotas, {environment.region}",
        subject=f"environment {environment.name}",
        field=("quotas", need.code),
    )


def _located(finding: Finding, catalogue: Catalogue, source: Source | None) -> Finding:
    if finding.subject in catalogue.sources:
        return finding.at(catalogue.locate(finding.subject, finding.field))
    return finding.at(source.locate(finding.field)) if source else finding


def _judge(
    findings: Iterable[Finding], environment: Environment
) -> tuple[tuple[Finding, ...], tuple[Acknowledged, ...]]:
    """Accepted warnings apart; the rest errors where the environment is strict."""
    opened, accepted = [], []
    for finding in sorted(findings, key=lambda f: f.sort_key):
        reason = next(
            (
                a.reason
                for a in environment.acknowledge
                if a.code == finding.code and a.model in (None, finding.subject)
            ),
            None,
        )
        if reason and finding.level is Severity.WARNING:
            accepted.append(Acknowledged(finding, reason))
        else:
            opened.append(replace(finding, severity=Severity.ERROR) if environment.strict else finding)
    return tuple(opened), tuple(accepted)
