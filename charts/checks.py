"""Charts of the jobs that ask a model after it was delivered, and of what they all run."""

from __future__ import annotations

from cdk8s import Chart
from constructs import Construct

from modelyard.k8s import BenchJob, ClientPrograms, SmokeJob
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class ChecksChart(Chart):
    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        if environment.checks.smoke:
            SmokeJob(self, "Smoke", plan=plan, environment=environment)
        if environment.checks.bench:
            BenchJob(self, "Bench", plan=plan, environment=environment)


class ProgramsChart(Chart):
    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id, disable_resource_name_hashes=True)
        ClientPrograms(self, "Programs", environment=environment)
