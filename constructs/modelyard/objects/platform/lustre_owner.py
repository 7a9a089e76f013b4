"""Makes the model servers' user the owner of a new Lustre file system's root."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.model_cache import static_volume
from modelyard.objects.pods.images import PYTHON
from modelyard.objects.pods.parts import Container, Pod, claim, mount
from modelyard.objects.pods.security import UID, container_security_context, security_levels
from modelyard.spec.storage import Cache

NAMESPACE = "model-cache-setup"
_NAME = "model-cache-owner"
_PATH = "/models"


def lustre_owner(cache: Cache) -> Iterator[Manifest]:
    """A Job that runs once as root, in its own namespace at Pod Security level `baseline`, with one
    capability.

    EFS and S3 Files set the owner through an access point. Lustre has none, its CSI driver does not change
    the owner of a shared volume, and root owns a new file system: no other user could write the first file.
    """
    labels = {**platform_labels(_NAME), "app.kubernetes.io/name": _NAME}
    yield manifest(
        api_version="v1",
        kind="Namespace",
        name=NAMESPACE,
        labels={**labels, **security_levels("baseline")},
    )
    yield manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        name="setup-default-deny",
        namespace=NAMESPACE,
        labels=labels,
        spec={"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    )
    yield manifest(
        api_version="v1",
        kind="ServiceAccount",
        name=_NAME,
        namespace=NAMESPACE,
        labels=labels,
        automountServiceAccountToken=False,
    )
    yield from static_volume(volume=_NAME, claim=_NAME, namespace=NAMESPACE, cache=cache, labels=labels)
    container = Container(
        name="chown",
        image=PYTHON,
        command=["chown", f"{UID}:{UID}", _PATH],
        requests={"cpu": "50m", "memory": "64Mi"},
        limits={"memory": "64Mi"},
        mounts=[mount("models", _PATH)],
        fields={
            "securityContext": {
                **container_security_context(),
                "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
            }
        },
    )
    pod = Pod(
        account=_NAME,
        containers=[container.manifest()],
        volumes=[claim("models", _NAME)],
        security={"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}},
        fields={"restartPolicy": "Never"},
    )
    yield manifest(
        api_version="batch/v1",
        kind="Job",
        name=_NAME,
        namespace=NAMESPACE,
        labels=labels,
        spec={"backoffLimit": 5, "template": {"metadata": {"labels": labels}, "spec": pod.spec()}},
    )
