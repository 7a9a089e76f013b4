"""What a plan consists of."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Parsers
from modelyard.findings import Finding, Severity
from modelyard.planning.cost import Cost
from modelyard.planning.placement import Placement, PodRequest
from modelyard.planning.quota import QuotaNeed
from modelyard.planning.rollout import Rollout
from modelyard.planning.serving import Serving
from modelyard.planning.startup import LoadStrategy, StartupPlan, load_strategy
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model


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
