"""The input of a check, and decorators for checks that run per model instead of per environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps

from modelyard.findings import Finding
from modelyard.hardware import Prices
from modelyard.planning.occupancy import Occupancy
from modelyard.planning.quota import QuotaNeed
from modelyard.planning.records import ModelPlan
from modelyard.planning.workloads import Workload
from modelyard.spec.environment import Environment
from modelyard.spec.loading import Catalogue


@dataclass(frozen=True)
class Proposal:
    """All decisions for an environment, before the checks run.

    `plans`: the workloads that are placed and complete; `refusals`: why other placed workloads are not
    complete. `occupied`: the occupancy of every used pool.
    """

    catalogue: Catalogue
    environment: Environment
    prices: Prices
    workloads: tuple[Workload, ...]
    occupied: Mapping[str, Occupancy]
    plans: tuple[ModelPlan, ...]
    refusals: tuple[Finding, ...]
    quotas: tuple[QuotaNeed, ...]

    @property
    def subject(self) -> str:
        """The environment as the subject of a finding."""
        return f"environment {self.environment.name}"


Check = Callable[[Proposal], Iterable[Finding]]


def each_workload(check: Callable[[Workload, Environment], Iterable[Finding]]) -> Check:
    """A check that runs once per model, placed or not. Prefill replicas come from the same file, so they are
    skipped."""

    @wraps(check)
    def of_all(proposal: Proposal) -> Iterator[Finding]:
        for workload in proposal.workloads:
            if workload.role != "prefill":
                yield from check(workload, proposal.environment)

    return of_all


def each_plan(check: Callable[[ModelPlan, Environment], Iterable[Finding]]) -> Check:
    """A check that runs once per model that can run."""

    @wraps(check)
    def of_all(proposal: Proposal) -> Iterator[Finding]:
        for planned in proposal.plans:
            if planned.role != "prefill":
                yield from check(planned, proposal.environment)

    return of_all
