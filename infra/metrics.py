"""Stack `Metrics`: storage of metrics outside the cluster."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.managed_metrics import ManagedMetrics
from modelyard.names import METRICS_ACCOUNT
from modelyard.spec import Environment


class MetricsStack(EnvironmentStack):
    concern = "metrics"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: managed Prometheus and Grafana"
        )
        metrics = ManagedMetrics(
            self,
            "Metrics",
            name=settings.cluster_name,
            cluster_name=settings.cluster_name,
            namespace=settings.monitoring.namespace,
            service_account=METRICS_ACCOUNT,
            dashboards=settings.monitoring.managed_grafana,
            log_retention_days=settings.cluster.log_retention_days,
            removal_policy=self.removal_policy,
        )
        self.publish("prometheus-endpoint", metrics.workspace.attr_prometheus_endpoint)

    @staticmethod
    def needed(settings: Environment) -> bool:
        """Whether metrics are stored outside the cluster."""
        return settings.monitoring.managed
