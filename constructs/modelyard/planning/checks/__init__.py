"""Checks of a plan. Each is a function in one of these modules (one per theme) and an entry of the tuple
below.

Findings are sorted by file position, so the order of the entries does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.checks import (
    capacity_checks,
    cluster_checks,
    engine_checks,
    environment_checks,
    model_checks,
    paging_checks,
    pool_checks,
    registry_checks,
    running_checks,
    team_checks,
    waste_checks,
)
from modelyard.planning.checks.proposal import Check, Proposal

PLAN_CHECKS: tuple[Check, ...] = (
    environment_checks.unpinned_images,
    environment_checks.model_cache,
    environment_checks.gateways,
    environment_checks.teams_accelerators,
    environment_checks.contradicting_access,
    environment_checks.overrides,
    environment_checks.gateway_names,
    paging_checks.somebody_is_paged,
    paging_checks.receivers,
    registry_checks.limited_registries,
    cluster_checks.old_components,
    cluster_checks.gates_of_others,
    pool_checks.unknown_accelerators,
    pool_checks.wrong_types,
    pool_checks.offered,
    pool_checks.limits,
    pool_checks.static_nodes,
    pool_checks.single_offerings,
    pool_checks.priceless_types,
    pool_checks.contradicting_prices,
    pool_checks.ending_reservations,
    model_checks.references,
    model_checks.streamed_weights,
    model_checks.exposure,
    model_checks.open_endpoints,
    model_checks.scaling,
    engine_checks.flags,
    engine_checks.parsers,
    engine_checks.signals,
    engine_checks.traces,
    capacity_checks.refusals,
    capacity_checks.pool_limits,
    capacity_checks.single_offerings,
    capacity_checks.zones_that_offer,
    capacity_checks.quotas,
    running_checks.memory,
    running_checks.disruptions,
    running_checks.rollouts,
    running_checks.fabrics,
    running_checks.startup_budgets,
    running_checks.spot_nodes,
    waste_checks.stranded_accelerators,
    waste_checks.preempted_batches,
    team_checks.unknown_teams,
    team_checks.granted_accelerators,
)


def problems(proposal: Proposal) -> Iterator[Finding]:
    """The findings of all checks."""
    for check in PLAN_CHECKS:
        yield from check(proposal)
