"""Chart of what watches an environment: dashboards, rules of the platform, monitors of its exporters."""

from __future__ import annotations

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import PlatformMonitoring
from modelyard.planning import Plan


class MonitoringChart(Chart):
    def __init__(self, scope: Construct, construct_id: str, *, plan: Plan, autoscaling: bool) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        PlatformMonitoring(self, "Monitoring", plan=plan, autoscaling=autoscaling)
