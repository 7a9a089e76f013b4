"""All rule groups of a model, and of an environment."""

from __future__ import annotations

from modelyard.observability.alerts import model_alerts
from modelyard.observability.cost import model_cost, pool_recordings
from modelyard.observability.delivery_alerts import delivery_alerts
from modelyard.observability.platform_alerts import platform_alerts
from modelyard.observability.recording import model_recordings
from modelyard.observability.rule import RuleGroup
from modelyard.observability.service_levels import service_levels
from modelyard.planning import ModelPlan, Plan


def model_groups(plan: ModelPlan, namespace: str) -> tuple[RuleGroup, ...]:
    """Recordings, costs, service levels and alerts of one model; alerts say whose it is."""
    groups = (
        model_recordings(plan, namespace),
        model_cost(plan, namespace),
        service_levels(plan, namespace),
        model_alerts(plan, namespace),
    )
    owner = plan.model.owner
    own = {"team": owner.team} if owner else {}
    return tuple(group.labelled(own) for group in groups if group is not None)


def platform_groups(plan: Plan) -> tuple[RuleGroup, ...]:
    """Recordings and alerts for what the models of an environment share."""
    groups = (pool_recordings(plan), platform_alerts(plan), delivery_alerts(plan))
    return tuple(group for group in groups if group is not None)
