"""CDK constructs for AWS: network, cluster, Karpenter, model cache, secrets, metrics, costs and delivery."""

from __future__ import annotations

import warnings
from typing import Any

from modelyard.aws.adopted_cluster import AdoptedCluster
from modelyard.aws.alert_topic import AlertPublisher
from modelyard.aws.argo_cd import ManagedArgoCd
from modelyard.aws.audit_log import AuditLog
from modelyard.aws.check_reports import CheckReports
from modelyard.aws.cluster import InferenceCluster
from modelyard.aws.cluster_access import TeamAccess
from modelyard.aws.cost_alarms import CostAlarms
from modelyard.aws.delivery import Delivery
from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.exact_actions import use_exact_actions
from modelyard.aws.flux import Flux
from modelyard.aws.image_cache import ImageCache
from modelyard.aws.karpenter import KarpenterController
from modelyard.aws.lustre_cache import LustreCache
from modelyard.aws.managed_metrics import ManagedMetrics
from modelyard.aws.model_cache import EfsCache
from modelyard.aws.network import ExistingNetwork, InferenceNetwork
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.aws.private_bucket import PrivateBucket
from modelyard.aws.s3_files_cache import S3FilesCache
from modelyard.aws.secrets import AssumedReader, ModelSecrets
from modelyard.aws.system_nodes import SystemNodeGroup
from modelyard.aws.weights_reader import WeightsReader

__all__ = [
    "AdoptedCluster",
    "AlertPublisher",
    "AssumedReader",
    "AuditLog",
    "CheckReports",
    "CostAlarms",
    "Delivery",
    "EfsCache",
    "EncryptionKey",
    "ExistingNetwork",
    "Flux",
    "ImageCache",
    "InferenceCluster",
    "InferenceNetwork",
    "KarpenterController",
    "LustreCache",
    "ManagedArgoCd",
    "ManagedMetrics",
    "ModelSecrets",
    "PodIdentityRole",
    "PrivateBucket",
    "S3FilesCache",
    "SystemNodeGroup",
    "TeamAccess",
    "WeightsReader",
    "use_exact_actions",
]


def __getattr__(name: str) -> Any:
    if name != "ModelCache":
        raise AttributeError(f"module 'modelyard.aws' has no attribute {name!r}")
    warnings.warn("modelyard.aws.ModelCache is modelyard.aws.EfsCache now", DeprecationWarning, stacklevel=2)
    return EfsCache
