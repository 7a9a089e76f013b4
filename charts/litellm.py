"""Chart of the LiteLLM proxy, which knows every model of the environment."""

from __future__ import annotations

from collections.abc import Sequence

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s.litellm import LiteLlmProxy
from modelyard.planning import ModelPlan
from modelyard.spec import Environment
from modelyard.spec.environment import LiteLlm


class LiteLlmChart(Chart):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plans: Sequence[ModelPlan],
        environment: Environment,
        settings: LiteLlm,
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        LiteLlmProxy(self, "Proxy", plans=plans, environment=environment, settings=settings)
