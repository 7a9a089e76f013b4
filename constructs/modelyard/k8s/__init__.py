"""The objects of `modelyard.objects` as cdk8s constructs, for people who compose charts of their own."""

from modelyard.k8s.construct import ManifestConstruct
from modelyard.k8s.models import BenchJob, ModelMonitoring, ModelServer, SmokeJob, WeightsFetch
from modelyard.k8s.platform import (
    AcceleratorPool,
    GeneralPool,
    HelmAddon,
    ModelCache,
    ModelNamespace,
    SynchronizedSecrets,
    TeamNamespace,
    TeamShare,
)

__all__ = [
    "AcceleratorPool",
    "BenchJob",
    "GeneralPool",
    "HelmAddon",
    "ManifestConstruct",
    "ModelCache",
    "ModelMonitoring",
    "ModelNamespace",
    "ModelServer",
    "SmokeJob",
    "SynchronizedSecrets",
    "TeamNamespace",
    "TeamShare",
    "WeightsFetch",
]
