"""Constructs for one model."""

from __future__ import annotations

import warnings

from constructs import Construct

from modelyard.k8s.construct import ManifestConstruct
from modelyard.objects.checks.jobs import bench_job, smoke_job
from modelyard.objects.manifest import Manifest
from modelyard.objects.monitoring.monitors import model_rules
from modelyard.objects.serving.model import model_server
from modelyard.objects.serving.weights import WeightsSource, fetch_job
from modelyard.planning import ModelPlan, Plan
from modelyard.releases import ImageRoutes
from modelyard.spec import Environment


class _OfOneModel(ManifestConstruct):
    """What the constructs of one model have in common: their props."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: Plan | ModelPlan,
        model: str | None = None,
        environment: Environment | None = None,
    ) -> None:
        parts, known = _planned(plan, model, environment)
        images = known.routes
        super().__init__(
            scope, construct_id, [images.redirected(item) for item in self._manifests(parts, known)]
        )

    @staticmethod
    def _manifests(parts: list[ModelPlan], environment: Environment) -> list[Manifest]:
        """The objects; `parts` are two plans if prefill and decode are separate."""
        raise NotImplementedError


class ModelServer(_OfOneModel):
    """All objects of one model; see `modelyard.objects.serving.model.model_server`.

    Namespace, cache, secrets, gateways and Prometheus come from the plan's environment.

    Args:
        plan: Result of `modelyard.plan` or `Project.plan`.
        model: Name of the model; default: the plan's only model.
        environment: Deprecated: the environment of a `plan` that is a ModelPlan.
    """

    @staticmethod
    def _manifests(parts: list[ModelPlan], environment: Environment) -> list[Manifest]:
        return [item for part in parts for item in model_server(part, environment)]


class ModelMonitoring(_OfOneModel):
    """The alerts and recording rules of one model, as a PrometheusRule.

    Args:
        plan: Result of `modelyard.plan` or `Project.plan`.
        model: Name of the model; default: the plan's only model.
        environment: Deprecated: the environment of a `plan` that is a ModelPlan.
    """

    @staticmethod
    def _manifests(parts: list[ModelPlan], environment: Environment) -> list[Manifest]:
        return [model_rules(part, environment) for part in parts]


class SmokeJob(_OfOneModel):
    """The Job that checks a model after its delivery. It mounts its program from a ConfigMap of
    `modelyard.objects.checks.jobs.client_programs`.

    Args:
        plan: Result of `modelyard.plan` or `Project.plan`.
        model: Name of the model; default: the plan's only model.
        environment: Deprecated: the environment of a `plan` that is a ModelPlan.
    """

    @staticmethod
    def _manifests(parts: list[ModelPlan], environment: Environment) -> list[Manifest]:
        return [smoke_job(_answering(parts), environment)]


class BenchJob(_OfOneModel):
    """The Job that load-tests a model after its delivery. It mounts its program from a ConfigMap of
    `modelyard.objects.checks.jobs.client_programs`.

    Args:
        plan: Result of `modelyard.plan` or `Project.plan`.
        model: Name of the model; default: the plan's only model.
        environment: Deprecated: the environment of a `plan` that is a ModelPlan.
    """

    @staticmethod
    def _manifests(parts: list[ModelPlan], environment: Environment) -> list[Manifest]:
        return [bench_job(_answering(parts), environment)]


class WeightsFetch(ManifestConstruct):
    """The Job that downloads one repository at one revision into the model cache, with service account
    `weights-fetch`.

    Args:
        source: What to download.
        environment: Name of the environment, used as a label of the Job.
        namespace: Namespace of the model cache's PersistentVolumeClaim.
        token_secret: Logical name of the secret with a Hugging Face token; default: no token.
        images: From where its image is pulled, `Environment.routes`; default: from where it is published.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        source: WeightsSource,
        environment: str,
        namespace: str = "models",
        token_secret: str | None = None,
        images: ImageRoutes | None = None,
    ) -> None:
        job = fetch_job(
            source=source,
            environment=environment,
            namespace=namespace,
            token_secret=token_secret,
            images=images,
        )
        super().__init__(scope, construct_id, [job])


def _planned(
    plan: Plan | ModelPlan, model: str | None, environment: Environment | None
) -> tuple[list[ModelPlan], Environment]:
    """The plans of `model` (two if prefill and decode are separate) and their environment.

    Raises:
        LookupError: the plan has no such model, or has several and `model` is not given.
        TypeError: a ModelPlan without its environment, or a Plan with a different one.
    """
    if isinstance(plan, ModelPlan) is (environment is None):
        raise TypeError("a Plan knows its environment, and a ModelPlan needs one")
    if isinstance(plan, ModelPlan):
        assert environment is not None
        message = "plan= is a Plan now, with model= instead of environment="
        warnings.warn(message, DeprecationWarning, stacklevel=4)  # skips the constructor and jsii's metaclass
        return [plan], environment
    names = sorted({part.model.name for part in plan.models})
    wanted = names[0] if model is None and len(names) == 1 else model
    if wanted not in names:
        raise LookupError(f"model={model} is none of the plan's: {', '.join(names) or 'it has none'}")
    return [part for part in plan.models if part.model.name == wanted], plan.environment


def _answering(parts: list[ModelPlan]) -> ModelPlan:
    """The plan whose replicas clients call: not the prefill replicas."""
    return min(parts, key=lambda part: part.role == "prefill")
