"""Gives the root of a new Lustre file system to the model servers' user."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.model_cache import add_volume
from modelyard.k8s.model_namespace import security_levels
from modelyard.k8s.pod_security import UID, container_security_context
from modelyard.k8s.weights import PYTHON_IMAGE
from modelyard.spec.storage import Cache

NAMESPACE = "model-cache-setup"
_NAME = "model-cache-owner"
_PATH = "/models"


class LustreOwner(Construct):
    """A Job that runs as root once, in a namespace of its own at Pod Security level `baseline`, with one capability.

    An access point decides who owns what on EFS and S3 Files. Lustre has none, its driver changes no owner of a shared
    volume, and root owns a new file system: nobody else could write the first file.
    """

    def __init__(self, scope: Construct, construct_id: str, *, cache: Cache) -> None:
        super().__init__(scope, construct_id)
        labels = {**platform_labels(_NAME), "app.kubernetes.io/name": _NAME}
        manifest(
            self,
            "Namespace",
            api_version="v1",
            kind="Namespace",
            name=NAMESPACE,
            labels={**labels, **security_levels("baseline")},
        )
        manifest(
            self,
            "NetworkPolicy",
            api_version="networking.k8s.io/v1",
            kind="NetworkPolicy",
            name="setup-default-deny",
            namespace=NAMESPACE,
            labels=labels,
            spec={"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        )
        manifest(
            self,
            "ServiceAccount",
            api_version="v1",
            kind="ServiceAccount",
            name=_NAME,
            namespace=NAMESPACE,
            labels=labels,
            automountServiceAccountToken=False,
        )
        add_volume(self, volume=_NAME, claim=_NAME, namespace=NAMESPACE, cache=cache, labels=labels)
        manifest(
            self,
            "Job",
            api_version="batch/v1",
            kind="Job",
            name=_NAME,
            namespace=NAMESPACE,
            labels=labels,
            spec={
                "backoffLimit": 5,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "automountServiceAccountToken": False,
                        "enableServiceLinks": False,
                        "restartPolicy": "Never",
                        "serviceAccountName": _NAME,
                        "securityContext": {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}},
                        "containers": [
                            {
                                "name": "chown",
                                "image": PYTHON_IMAGE,
                                "command": ["chown", f"{UID}:{UID}", _PATH],
                                "resources": {
                                    "requests": {"cpu": "50m", "memory": "64Mi"},
                                    "limits": {"memory": "64Mi"},
                                },
                                "securityContext": {
                                    **container_security_context(),
                                    "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
                                },
                                "volumeMounts": [{"name": "models", "mountPath": _PATH}],
                            }
                        ],
                        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": _NAME}}],
                    },
                },
            },
        )
