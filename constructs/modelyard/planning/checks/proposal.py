"""What a check sees, and the two ways to write one for each model instead of for the whole environment."""

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
    """All that was decided for an environment, before it is judged.

    `plans` are of the workloads that have a place and everything else; `refusals` say what kept the others
    with a place from one. `occupied` is every used pool's occupancy.
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
    """A check of one model, placed or not. Replicas that only read prompts have the same file: it is checked
    once."""

    @wraps(check)
    def of_all(proposal: Proposal) -> Iterator[Finding]:
        for workload in proposal.workloads:
            if workload.role != "prefill":
                yield from check(workload, proposal.environment)

    return of_all


def each_plan(check: Callable[[ModelPlan, Environment], Iterable[Finding]]) -> Check:
    """A check of one model that can run; once as well."""

    @wraps(check)
    def of_all(proposal: Proposal) -> Iterator[Finding]:
        for planned in proposal.plans:
            if planned.role != "prefill":
                yield from check(planned, proposal.environment)

    return of_all
