"""The records of a plan."""

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
    """All decisions for one model in one environment. `model` has the environment's overrides applied."""

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
        """The model's name; `NAME-prefill` for prefill replicas."""
        return f"{self.model.name}-prefill" if self.role == "prefill" else self.model.name

    @property
    def served_names(self) -> tuple[str, ...]:
        """Served model names, the primary one first."""
        weights = self.model.model
        if "servedNames" not in self.serving.release.supports:  # the engine lists one name only
            return weights.served_names or (self.model.name,)
        return weights.served_names or tuple(dict.fromkeys((self.model.name, weights.repository)))

    @property
    def gateway_names(self) -> tuple[str, ...]:
        """Names that the LiteLLM gateway routes to the model, its own first; none for a batch.

        Without the repository's ID, which is served by default: two models may have the same.
        """
        if self.model.batch:
            return ()
        adapters = (adapter.name for adapter in self.model.adapters)
        return tuple(dict.fromkeys((self.model.name, *self.model.model.served_names, *adapters)))

    @property
    def interface(self) -> Release:
        """The release that defines the servers' paths and metrics."""
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
        """Whether the server sends traces: enabled, and supported by its image."""
        return self.model.observability.tracing and self.serving.release.tracing

    @property
    def throughput(self) -> Throughput:
        """Roofline throughput of one replica in tokens per second. An embedding or a score counts as one
        output token."""
        return roofline(self.serving)


@dataclass(frozen=True)
class Acknowledged:
    """A warning that the environment accepts."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Plan:
    """The plan of one environment and its prices; deployable if no finding is an error."""

    environment: Environment
    prices: Prices
    models: tuple[ModelPlan, ...]
    quotas: tuple[QuotaNeed, ...]
    findings: tuple[Finding, ...]
    acknowledged: tuple[Acknowledged, ...] = ()
    runner: Runner = OURS

    def run_by(self, runner: Runner) -> Plan:
        """A copy of the plan whose servers `runner` starts."""
        return replace(self, runner=runner, models=tuple(replace(m, runner=runner) for m in self.models))

    @property
    def deployable(self) -> bool:
        return all(finding.level is not Severity.ERROR for finding in self.findings)

    @property
    def patched(self) -> bool:
        """Whether any model changes its objects by patches."""
        return any(planned.model.patches for planned in self.models)

    @property
    def pools(self) -> tuple[PoolCost, ...]:
        """Cost of the pools with nodes shared between models; less than the sum over models that leave nodes
        half empty."""
        return pool_costs(
            Lodger(m.placement, m.model.replicas.min, m.serving.count, m.cost) for m in self.models
        )

    @property
    def floor(self) -> float:
        """Lowest cost in US dollars per hour, over the pools with a known price."""
        return sum(pool.floor or 0 for pool in self.pools)

    @property
    def floor_at_most(self) -> bool:
        """Whether the floor may be lower because spot or a reservation has no stated price."""
        return any(model.cost.floor_at_most for model in self.models)

    @property
    def ceiling(self) -> float:
        """Highest cost in US dollars per hour, over the models with a known price, each on its own nodes."""
        return sum(model.cost.ceiling or 0 for model in self.models)

    @property
    def stranded(self) -> float:
        """US dollars per hour for accelerators that no model uses at the floor, over the pools with a known
        price."""
        return sum(pool.stranded or 0 for pool in self.pools)

    @property
    def by_capacity(self) -> tuple[CapacityCost, ...]:
        """Sums of the models' costs by capacity type, where their pools allow it."""
        return sum_of_costs(model.cost for model in self.models)

    def rollout_room(self, team: str) -> Mapping[str, int]:
        """Accelerators by type that the team's models need beyond maximum replicas while all of them roll
        out."""
        room: Counter[str] = Counter()
        for plan in self.models:
            owner = plan.model.owner
            if owner and owner.team == team and not (plan.serving.on_cpu or plan.model.batch):
                room[plan.serving.accelerator.name] += plan.rollout.max_surge * plan.serving.count
        return room

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models on instance types without a public price; the sums leave them out."""
        return tuple(
            model.name for model in self.models if model.cost.floor is None or model.cost.ceiling is None
        )
