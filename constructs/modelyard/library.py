"""Planning without files, for programs that have models and an environment as objects."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from modelyard import planning
from modelyard.planning import Plan
from modelyard.spec import Catalogue, Environment, Model


def plan(models: Iterable[Model], environment: Environment) -> Plan:
    """Plan `models` in `environment`: settings, place, rollout, start-up and cost of each, and every finding.

    `Plan.deployable` says whether a finding is an error. Two models of one name are one, the last.
    """
    catalogue = Catalogue(MappingProxyType({model.name: model for model in models}))
    return planning.plan(catalogue, environment)
