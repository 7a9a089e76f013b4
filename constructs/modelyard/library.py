"""Planning without files, for programs that have models and an environment as objects."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from modelyard import planning
from modelyard.planning import Plan
from modelyard.spec import Catalogue, Environment, Model


def plan(models: Iterable[Model], environment: Environment) -> Plan:
    """Plan `models` in `environment`: settings, placement, rollout, start-up and cost of each, and all
    findings.

    `Plan.deployable` is False if a finding is an error. Of models with the same name, the last one counts.
    """
    catalogue = Catalogue(MappingProxyType({model.name: model for model in models}))
    return planning.plan(catalogue, environment)
