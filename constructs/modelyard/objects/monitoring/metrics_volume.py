"""The volumes of Prometheus and Alertmanager: without them, data and silences are gone with the pod."""

from __future__ import annotations

from typing import Any, Final

from modelyard.names import METRICS_VOLUME_GIB, SILENCES_VOLUME_GIB
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.spec import Environment

STORAGE_CLASS: Final = "metrics"
# A constant, because the operator does not grow the claim of a StatefulSet: a larger retention would fill a
# volume that has stayed as small as it was (METRICS_VOLUME_GIB). A million series at the chart's 30 s are
# 33,000 samples a second of 1 to 2 bytes (Prometheus' documentation, Storage): 43 to 86 GB in 15 days. Of
# more, the oldest go.
_RETENTION_GIB: Final = 85
_RETENTION: Final = "15d"


def metrics_class(environment: Environment) -> Manifest:
    """A StorageClass of encrypted gp3 volumes: EKS makes none that is the default, and Auto Mode has a driver
    of its own (EKS user guide, "Create a storage class" of Auto Mode)."""
    auto = environment.cluster.auto_mode
    return manifest(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        name=STORAGE_CLASS,
        labels=platform_labels("metrics"),
        provisioner="ebs.csi.eks.amazonaws.com" if auto else "ebs.csi.aws.com",
        parameters={"type": "gp3", "encrypted": "true"},
        # The claim decides: it stays where data do.
        reclaimPolicy="Delete",
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=True,
    )


def prometheus_storage(environment: Environment) -> dict[str, Any]:
    """Values of `prometheusSpec`: claim and retention, by time and below the volume's size."""
    return {
        "retention": _RETENTION,
        "retentionSize": f"{_RETENTION_GIB}GiB",
        "storageSpec": _claim(METRICS_VOLUME_GIB),
        "persistentVolumeClaimRetentionPolicy": _kept(environment),
    }


def alertmanager_storage(environment: Environment) -> dict[str, Any]:
    """Values of `alertmanagerSpec`: silences, and who was told of what."""
    return {
        "storage": _claim(SILENCES_VOLUME_GIB),
        "persistentVolumeClaimRetentionPolicy": _kept(environment),
    }


def _claim(gib: int) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "resources": {"requests": {"storage": f"{gib}Gi"}},
    }
    return {"volumeClaimTemplate": {"spec": spec}}


def _kept(environment: Environment) -> dict[str, str]:
    return {
        "whenDeleted": "Retain" if environment.removal == "retain" else "Delete",
        "whenScaled": "Retain",
    }
