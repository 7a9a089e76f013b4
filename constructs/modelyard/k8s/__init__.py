"""The objects of `modelyard.objects` as cdk8s constructs, for charts of your own."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

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
from modelyard.objects.serving.weights import WeightsSource

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
    "WeightsSource",
]

# Names that moved when objects became functions, and their new modules.
_MOVED = {
    "ModelRules": ("modelyard.k8s", "ModelMonitoring"),
    "Rendering": ("modelyard.writing", "Rendering"),
    "SharedModelCache": ("modelyard.k8s", "ModelCache"),
    "write_tree": ("modelyard.objects.tree", "write_tree"),
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'modelyard.k8s' has no attribute {name!r}")
    module, now = _MOVED[name]
    warnings.warn(f"modelyard.k8s.{name} is {module}.{now} now", DeprecationWarning, stacklevel=2)
    return getattr(import_module(module), now)
