"""Stack `Cost`: cost alerts and their recipients."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.cost_alarms import CostAlarms
from modelyard.spec import Environment


class CostStack(EnvironmentStack):
    concern = "cost"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: budget and cost alarms"
        )
        cost = settings.cost
        CostAlarms(
            self,
            "Alarms",
            name=f"modelyard-{settings.name}",
            tag=self.own_tag(settings),
            emails=cost.emails,
            monthly_usd=cost.monthly_usd,
            alert_at_percent=cost.alert_at_percent,
            anomaly_usd=cost.anomaly_usd,
            anomaly_monitor=cost.anomaly_monitor or "services",
            reservations={
                reservation.id: name
                for name, pool in settings.pools.items()
                for reservation in pool.reservations
            },
            removal_policy=self.removal_policy,
        )

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether any cost alert is configured."""
        return bool(settings.cost.emails)
