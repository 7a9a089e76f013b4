"""Names shared by templates, manifests and checks."""

from __future__ import annotations

from typing import Final

from modelyard.planning.records import ModelPlan
from modelyard.releases import addons
from modelyard.spec.environment import Environment

WEIGHTS_READER: Final = "weights-reader"
"""Service account of all model servers that stream weights from S3, so that one Pod Identity association
suffices."""

CHECKS_ACCOUNT: Final = "endpoint-checks"
"""Service account of all endpoint check jobs; its only permission is to write reports."""

REPORTS_VARIABLE: Final = "modelyard_check_reports"
"""Variable in the manifests for the bucket of these reports."""

ENVIRONMENT_TAG: Final = "modelyard:environment"
"""Tag on all resources of an environment: its stacks, and the nodes that Karpenter launches. Budgets filter
by it."""

POD_SUBNETS_TAG: Final = "modelyard:pods"
"""Tag on subnets for pods only; its value is the cluster's name."""

AUTO_MODE_POOLS: Final = ("system", "general-purpose")
"""Built-in NodePools of EKS Auto Mode: for its own components, and for pods that select no pool."""

_BESIDE_AUTO_MODE: Final = frozenset({"aws-efs-csi-driver", "aws-fsx-csi-driver", "metrics-server"})
"""EKS add-ons that Auto Mode does not replace."""

METRICS_ACCOUNT: Final = "prometheus"
"""Service account of Prometheus, which writes to the managed workspace if there is one."""

METRICS_VARIABLE: Final = "modelyard_prometheus_endpoint"
"""Variable in the manifests for the workspace's URL, with a trailing slash."""


def stack_name(environment: str, concern: str) -> str:
    """The stack of one concern, such as `network`."""
    return f"modelyard-{environment}-{concern}"


def parameter_name(environment: str, concern: str, key: str) -> str:
    """The SSM parameter with which the stack of `concern` passes a value to other stacks."""
    return f"/modelyard/{environment}/{concern}/{key}"


def service_account(plan: ModelPlan, environment: Environment) -> str:
    """Service account of a model's servers: their own without permissions, or the one that reads buckets."""
    streams = plan.model.cache_strategy == "s3-stream"
    return WEIGHTS_READER if streams and environment.readable_buckets else plan.name


def cache_variable(file_system: str, key: str) -> str:
    """Variable in the manifests for a value of the model cache that exists only after the deploy, such as
    `modelyard_efs_file_system_id`."""
    return f"modelyard_{file_system.replace('-', '')}_{key.replace('-', '_')}"


def cluster_addons(environment: Environment) -> tuple[str, ...]:
    """EKS add-ons that the cluster stack installs."""
    lustre = environment.cache.file_system == "lustre"
    return tuple(
        name
        for name in addons()
        if (lustre or name != "aws-fsx-csi-driver")
        and (name in _BESIDE_AUTO_MODE or not environment.cluster.auto_mode)
    )
