"""Stack `Alerts`: the topic of alerts, and Alertmanager's permission to publish."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.alert_topic import AlertPublisher
from modelyard.names import ALERTS_ACCOUNT
from modelyard.spec import Environment


class AlertsStack(EnvironmentStack):
    concern = "alerts"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: who is told of alerts"
        )
        topics = [each.sns for each in settings.monitoring.receivers.values() if each.sns]
        AlertPublisher(
            self,
            "Alerts",
            cluster_name=settings.cluster_name,
            namespace=settings.monitoring.namespace,
            service_account=ALERTS_ACCOUNT,
            topic_name=settings.alert_topic.rpartition(":")[2],
            emails=sorted({email for topic in topics for email in topic.emails}),
            topics=sorted({topic.topic for topic in topics if topic.topic}),
            removal_policy=self.removal_policy,
        )

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether alerts go to a topic."""
        return settings.monitoring.publishes
