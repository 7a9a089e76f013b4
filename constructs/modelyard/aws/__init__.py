"""CDK constructs for the AWS half: network, cluster, Karpenter, model cache, secrets, metrics, costs and
delivery."""

from __future__ import annotations

import warnings
from typing import Any

from modelyard.aws.argo_cd import ManagedArgoCd
from modelyard.aws.check_reports import CheckReports
from modelyard.aws.cluster import InferenceCluster, TeamAccess
from modelyard.aws.cost_alarms import CostAlarms
from modelyard.aws.delivery import Delivery
from modelyard.aws.flux import Flux
from modelyard.aws.karpenter import KarpenterController
from modelyard.aws.lustre_cache import LustreCache
from modelyard.aws.managed_metrics import ManagedMetrics
from modelyard.aws.model_cache import EfsCache
from modelyard.aws.network import ExistingNetwork, InferenceNetwork
from modelyard.aws.s3_files_cache import S3FilesCache
from modelyard.aws.secrets import ModelSecrets
from modelyard.aws.weights_reader import WeightsReader

__all__ = [
    "CheckReports",
    "CostAlarms",
    "Delivery",
    "EfsCache",
    "ExistingNetwork",
    "Flux",
    "InferenceCluster",
    "InferenceNetwork",
    "KarpenterController",
    "LustreCache",
    "ManagedArgoCd",
    "ManagedMetrics",
    "ModelSecrets",
    "S3FilesCache",
    "TeamAccess",
    "WeightsReader",
]


def __getattr__(name: str) -> Any:
    if name != "ModelCache":
        raise AttributeError(f"module 'modelyard.aws' has no attribute {name!r}")
    warnings.warn("modelyard.aws.ModelCache is modelyard.aws.EfsCache now", DeprecationWarning, stacklevel=2)
    return EfsCache
