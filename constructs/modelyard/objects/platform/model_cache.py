"""The shared model cache as Kubernetes sees it: one file system, bound by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modelyard.names import (
    ACCESS_POINT_ID,
    CACHE_SIZE,
    DNS_NAME,
    FILE_SYSTEM_ID,
    MODEL_CACHE,
    MOUNT_NAME,
    cache_variable,
)
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.spec.storage import Cache

CLAIM = MODEL_CACHE
MOUNT_PATH = "/models"
_STORAGE_CLASS = MODEL_CACHE


def shared_model_cache(
    *,
    namespace: str,
    cache: Cache,
    by_role: bool = True,  # whether the EFS driver has the role that a file system of ours admits
) -> Iterator[Manifest]:
    """StorageClass, PersistentVolume and claim `model-cache`, read-write from every zone at the same time."""
    labels = platform_labels(MODEL_CACHE)
    yield manifest(
        api_version="storage.k8s.io/v1",
        kind="StorageClass",
        name=_STORAGE_CLASS,
        labels=labels,
        provisioner=volume_source(cache)[0]["driver"],
        reclaimPolicy="Retain",
        volumeBindingMode="Immediate",
    )
    yield from static_volume(
        volume=f"model-cache-{namespace}",
        claim=CLAIM,
        namespace=namespace,
        cache=cache,
        by_role=by_role,
        labels=labels,
        # Weights are expensive to fetch again: neither Flux nor Argo CD deletes the claim.
        annotations={
            "argocd.argoproj.io/sync-options": "Prune=false",
            "kustomize.toolkit.fluxcd.io/prune": "disabled",
        },
    )


def static_volume(
    *,
    volume: str,
    claim: str,
    namespace: str,
    cache: Cache,
    by_role: bool = True,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,  # of the claim
) -> Iterator[Manifest]:
    """The cache's file system as a PersistentVolume, bound by name to a claim in `namespace`."""
    csi, options = volume_source(cache, by_role=by_role)
    storage = {"storage": CACHE_SIZE}
    yield manifest(
        api_version="v1",
        kind="PersistentVolume",
        name=volume,
        labels=labels,
        spec={
            "accessModes": ["ReadWriteMany"],
            "capacity": storage,
            "claimRef": {"namespace": namespace, "name": claim},
            "csi": csi,
            "mountOptions": options,
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": _STORAGE_CLASS,
            "volumeMode": "Filesystem",
        },
    )
    yield manifest(
        api_version="v1",
        kind="PersistentVolumeClaim",
        name=claim,
        namespace=namespace,
        labels=labels,
        annotations=annotations,
        spec={
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": storage},
            "storageClassName": _STORAGE_CLASS,
            "volumeName": volume,
        },
    )


def volume_source(cache: Cache, *, by_role: bool = True) -> tuple[dict[str, Any], list[str]]:
    """The CSI source of the cache's PersistentVolume, and its mount options. Ids that exist only after the
    deploy are `${NAME}`, which Flux substitutes."""

    def value(key: str) -> str:
        return "${" + cache_variable(cache.file_system, key) + "}"

    if cache.file_system == "lustre":
        attributes = {"dnsname": value(DNS_NAME), "mountname": value(MOUNT_NAME)}
        return {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": value(FILE_SYSTEM_ID),
            "volumeAttributes": attributes,
        }, ["flock"]
    file_system = cache.file_system_id or value(FILE_SYSTEM_ID)
    handle = f"{file_system}::{cache.access_point_id or value(ACCESS_POINT_ID)}"
    if cache.file_system == "s3-files":
        handle = f"s3files:{handle}"  # without the prefix the driver assumes EFS
    # With `iam` the mount helper signs with the credentials of the driver's pod on the node (aws/efs-utils
    # 2.3: Pod Identity before the node's role). S3 Files always does. API servers let mount options change;
    # they hold from the next mount on.
    options = ["tls", "iam"] if by_role and cache.mounted_by_role else ["tls"]
    return {"driver": "efs.csi.aws.com", "volumeHandle": handle}, options
