"""The shared model cache as Kubernetes sees it: one EFS access point, bound by name."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.weights import CLAIM

# Flux puts the ids in, which exist only after the deploy.
FILE_SYSTEM_VARIABLE = "${modelyard_efs_file_system_id}"
ACCESS_POINT_VARIABLE = "${modelyard_efs_access_point_id}"

_STORAGE_CLASS = "model-cache"


class SharedModelCache(Construct):
    """StorageClass, PersistentVolume and claim `model-cache`, readable and writable from every zone at once."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        size_gib: int,
        file_system_id: str = FILE_SYSTEM_VARIABLE,
        access_point_id: str = ACCESS_POINT_VARIABLE,
    ) -> None:
        super().__init__(scope, construct_id)
        labels = platform_labels("model-cache")
        volume = f"model-cache-{namespace}"
        manifest(
            self,
            "StorageClass",
            api_version="storage.k8s.io/v1",
            kind="StorageClass",
            name=_STORAGE_CLASS,
            labels=labels,
            provisioner="efs.csi.aws.com",
            reclaimPolicy="Retain",
            volumeBindingMode="Immediate",
        )
        manifest(
            self,
            "PersistentVolume",
            api_version="v1",
            kind="PersistentVolume",
            name=volume,
            labels=labels,
            spec={
                "accessModes": ["ReadWriteMany"],
                "capacity": {"storage": f"{size_gib}Gi"},
                "claimRef": {"namespace": namespace, "name": CLAIM},
                "csi": {"driver": "efs.csi.aws.com", "volumeHandle": f"{file_system_id}::{access_point_id}"},
                "mountOptions": ["tls"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": _STORAGE_CLASS,
                "volumeMode": "Filesystem",
            },
        )
        manifest(
            self,
            "PersistentVolumeClaim",
            api_version="v1",
            kind="PersistentVolumeClaim",
            name=CLAIM,
            namespace=namespace,
            labels=labels,
            # Weights are expensive to fetch again: neither Flux nor Argo CD removes the claim.
            annotations={
                "argocd.argoproj.io/sync-options": "Prune=false",
                "kustomize.toolkit.fluxcd.io/prune": "disabled",
            },
            spec={
                "accessModes": ["ReadWriteMany"],
                "resources": {"requests": {"storage": f"{size_gib}Gi"}},
                "storageClassName": _STORAGE_CLASS,
                "volumeName": volume,
            },
        )
