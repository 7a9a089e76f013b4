"""Names that templates, manifests and checks have to agree on."""

from __future__ import annotations

from typing import Final

from modelyard.planning.records import ModelPlan
from modelyard.releases import addons
from modelyard.spec.environment import Environment

WEIGHTS_READER: Final = "weights-reader"
"""Service account of model servers that stream weights from S3: one for all, so that one association admits
it."""

CHECKS_ACCOUNT: Final = "endpoint-checks"
"""Service account of the jobs that ask the models: one for all, which may write reports and do nothing
else."""

REPORTS_VARIABLE: Final = "modelyard_check_reports"
"""Name under which the tree asks for the bucket of those reports."""

ENVIRONMENT_TAG: Final = "modelyard:environment"
"""Tag on everything of an environment: its stacks, and the nodes that Karpenter launches. Budgets go by
it."""

POD_SUBNETS_TAG: Final = "modelyard:pods"
"""Tag on subnets that are for pods alone; its value is the cluster's name."""

AUTO_MODE_POOLS: Final = ("system", "general-purpose")
"""Pools that EKS Auto Mode keeps by itself: for its own components, and for whatever names no pool."""

_BESIDE_AUTO_MODE: Final = frozenset({"aws-efs-csi-driver", "aws-fsx-csi-driver", "metrics-server"})
"""EKS add-ons whose work Auto Mode does not do."""

METRICS_ACCOUNT: Final = "prometheus"
"""Service account of Prometheus, which writes to the managed workspace where there is one."""

METRICS_VARIABLE: Final = "modelyard_prometheus_endpoint"
"""Name under which the tree asks for that workspace's address, with a slash at its end."""


def stack_name(environment: str, concern: str) -> str:
    """The stack of one concern, such as `network`."""
    return f"modelyard-{environment}-{concern}"


def parameter_name(environment: str, concern: str, key: str) -> str:
    """The parameter in which the stack of `concern` hands a value to others."""
    return f"/modelyard/{environment}/{concern}/{key}"


def service_account(plan: ModelPlan, environment: Environment) -> str:
    """The service account of a model's servers: their own, which may do nothing, or the one that reads
    buckets."""
    streams = plan.model.cache_strategy == "s3-stream"
    return WEIGHTS_READER if streams and environment.readable_buckets else plan.name


def cache_variable(file_system: str, key: str) -> str:
    """Name under which the tree asks for a value of the model cache that exists only after the deploy, such
    as `modelyard_efs_file_system_id`."""
    return f"modelyard_{file_system.replace('-', '')}_{key.replace('-', '_')}"


def cluster_addons(environment: Environment) -> tuple[str, ...]:
    """EKS add-ons that a deploy installs."""
    lustre = environment.cache.file_system == "lustre"
    return tuple(
        name
        for name in addons()
        if (lustre or name != "aws-fsx-csi-driver")
        and (name in _BESIDE_AUTO_MODE or not environment.cluster.auto_mode)
    )
