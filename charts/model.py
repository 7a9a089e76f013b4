"""Chart of one model: all its replicas, whatever their part in a request."""

from __future__ import annotations

from collections.abc import Iterable

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import ModelRules, ModelServer
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class ModelChart(Chart):
    def __init__(
        self, scope: Construct, construct_id: str, *, plans: Iterable[ModelPlan], environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        for plan in plans:
            ModelServer(self, f"Server-{plan.role}", plan=plan, environment=environment)
            if environment.monitoring.enabled and not plan.model.batch:
                ModelRules(self, f"Rules-{plan.role}", plan=plan, environment=environment)
