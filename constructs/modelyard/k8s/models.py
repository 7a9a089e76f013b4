"""Constructs of one model."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.construct import ManifestConstruct
from modelyard.objects.checks.jobs import bench_job, smoke_job
from modelyard.objects.monitoring.monitors import model_rules
from modelyard.objects.serving.model import model_server
from modelyard.objects.serving.weights import WeightsSource, fetch_job
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class ModelServer(ManifestConstruct):
    """Everything that runs one model, finds it and protects it; see
    `modelyard.objects.serving.model.model_server`."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, model_server(plan, environment))


class ModelMonitoring(ManifestConstruct):
    """The PrometheusRule of one model."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, [model_rules(plan, environment)])


class SmokeJob(ManifestConstruct):
    """The job that checks a model after it was delivered."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, [smoke_job(plan, environment)])


class BenchJob(ManifestConstruct):
    """The job that measures a model after it was delivered."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: ModelPlan, environment: Environment
    ) -> None:
        super().__init__(scope, construct_id, [bench_job(plan, environment)])


class WeightsFetch(ManifestConstruct):
    """The job that downloads one repository at one revision into the model cache."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: WeightsSource,
        environment: str,
        namespace: str,
        token_secret: str | None = None,  # logical name of the secret with a Hugging Face token
    ) -> None:
        job = fetch_job(
            source=source, environment=environment, namespace=namespace, token_secret=token_secret
        )
        super().__init__(scope, construct_id, [job])
