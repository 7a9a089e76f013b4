"""Chart of one model."""

from __future__ import annotations

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import ModelRules, ModelServer
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class ModelChart(Chart):
    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        ModelServer(self, "Server", plan=plan, environment=environment)
        if environment.monitoring.enabled:
            ModelRules(self, "Rules", plan=plan, environment=environment)
