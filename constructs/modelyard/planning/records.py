"""What a plan consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from modelyard.engines import Parsers, Release
from modelyard.engines.settings import KvRole
from modelyard.findings import Finding, Severity
from modelyard.hardware import Prices
from modelyard.memory.serving import Serving
from modelyard.memory.throughput import Throughput, roofline
from modelyard.planning.admission import PodRequest
from modelyard.planning.cost import CapacityCost, Cost, Lodger, PoolCost, pool_costs, sum_of_costs
from modelyard.planning.placement import Placement
from modelyard.planning.quota import QuotaNeed
from modelyard.planning.rollout import Rollout
from modelyard.planning.runner import OURS, Runner
from modelyard.planning.startup import LoadStrategy, StartupPlan, load_strategy
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model


@dataclass(frozen=True)
class ModelPlan:
    """All that is decided for one model in one environment. `model` has the environment's overrides
    applied."""

    model: Model
    serving: Serving
    placement: Placement
    pod: PodRequest
    rollout: Rollout
    startup: StartupPlan
    cost: Cost
    parsers: Parsers
    token_secret: str | None
    role: KvRole = "both"
    runner: Runner = OURS

    @property
    def name(self) -> str:
        """The model's name; `NAME-prefill` for the replicas that only read prompts."""
        return f"{self.model.name}-prefill" if self.role == "prefill" else self.model.name

    @property
    def served_names(self) -> tuple[str, ...]:
        """Names under which clients ask for the model, the first one first."""
        weights = self.model.model
        if "servedNames" not in self.serving.release.supports:  # one name is all that the engine lists
            return weights.served_names or (self.model.name,)
        return weights.served_names or tuple(dict.fromkeys((self.model.name, weights.repository)))

    @property
    def interface(self) -> Release:
        """The release whose paths and metrics the servers have."""
        return self.runner.stand_in or self.serving.release

    @property
    def load_strategy(self) -> LoadStrategy:
        """How the engine reads the checkpoint from the shared cache."""
        return load_strategy(self.serving, self.placement, self.pod)

    @property
    def zonal(self) -> bool:
        """Whether replicas are spread over zones."""
        return self.model.availability != "single" and self.model.replicas.max > 1

    @property
    def traced(self) -> bool:
        """Whether the server sends traces: asked for, and possible with its image."""
        return self.model.observability.tracing and self.serving.release.tracing

    @property
    def throughput(self) -> Throughput:
        """Tokens a second of one replica: the bound of its hardware. Vectors or scores count as one token of
        output."""
        return roofline(self.serving)


@dataclass(frozen=True)
class Acknowledged:
    """A warning that the environment accepts."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Plan:
    """The plan of one environment, with the prices that it was made with; deployable when no finding is an
    error."""

    environment: Environment
    prices: Prices
    models: tuple[ModelPlan, ...]
    quotas: tuple[QuotaNeed, ...]
    findings: tuple[Finding, ...]
    acknowledged: tuple[Acknowledged, ...] = ()
    runner: Runner = OURS

    def run_by(self, runner: Runner) -> Plan:
        """The same plan with `runner` for what starts the servers."""
        return replace(self, runner=runner, models=tuple(replace(m, runner=runner) for m in self.models))

    @property
    def deployable(self) -> bool:
        return all(finding.level is not Severity.ERROR for finding in self.findings)

    @property
    def pools(self) -> tuple[PoolCost, ...]:
        """What the pools cost when models share nodes: less than the models one by one, where they leave
        halves."""
        return pool_costs(
            Lodger(m.placement, m.model.replicas.min, m.serving.count, m.cost) for m in self.models
        )

    @property
    def floor(self) -> float:
        """US dollars an hour at the least, over the pools whose price is known."""
        return sum(pool.floor or 0 for pool in self.pools)

    @property
    def floor_at_most(self) -> bool:
        """Whether the floor may be lower, because spot or a reservation has no stated price."""
        return any(model.cost.floor_at_most for model in self.models)

    @property
    def ceiling(self) -> float:
        """US dollars an hour at the most, over the models whose price is known: each on nodes of its own."""
        return sum(model.cost.ceiling or 0 for model in self.models)

    @property
    def stranded(self) -> float:
        """US dollars an hour for accelerators that no model uses at the floor, over the pools whose price is
        known."""
        return sum(pool.stranded or 0 for pool in self.pools)

    @property
    def by_capacity(self) -> tuple[CapacityCost, ...]:
        """The models' costs under each capacity type that their pools allow, added up."""
        return sum_of_costs(model.cost for model in self.models)

    def rollout_room(self, team: str) -> Mapping[str, int]:
        """Accelerators by kind that replicas of the team's models hold beyond their largest number while all
        are replaced."""
        room: Counter[str] = Counter()
        for plan in self.models:
            owner = plan.model.owner
            if owner and owner.team == team and not (plan.serving.on_cpu or plan.model.batch):
                room[plan.serving.accelerator.name] += plan.rollout.max_surge * plan.serving.count
        return room

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models on types without a public price: the sums leave them out."""
        return tuple(
            model.name for model in self.models if model.cost.floor is None or model.cost.ceiling is None
        )
