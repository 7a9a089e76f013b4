"""Service accounts of models and add-ons of clusters: names that a plan or an environment decides on."""

from __future__ import annotations

from typing import Final

from modelyard.names import EFS_DRIVER, FSX_DRIVER, METRICS_SERVER, WEIGHTS_READER
from modelyard.planning.records import ModelPlan
from modelyard.releases import addons
from modelyard.spec.environment import Environment

_BESIDE_AUTO_MODE: Final = frozenset({EFS_DRIVER, FSX_DRIVER, METRICS_SERVER})
"""EKS add-ons that Auto Mode does not replace."""


def service_account(plan: ModelPlan, environment: Environment) -> str:
    """Service account of a model's servers: their own without permissions, or the one that reads buckets."""
    streams = plan.model.cache_strategy == "s3-stream"
    return WEIGHTS_READER if streams and environment.readable_buckets else plan.name


def cluster_addons(environment: Environment) -> tuple[str, ...]:
    """EKS add-ons that the cluster stack installs."""
    lustre, cluster = environment.cache.file_system == "lustre", environment.cluster
    return tuple(
        name
        for name in addons()
        if (lustre or name != FSX_DRIVER)
        and (name in _BESIDE_AUTO_MODE or not cluster.auto_mode)
        and not cluster.has(name)
    )
