"""Pods and their parts, hardened by default: for servers, routers, proxies and Jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from modelyard.names import DO_NOT_DISRUPT
from modelyard.objects.manifest import Manifest
from modelyard.objects.pods.security import container_security_context, pod_security_context


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container with a read-only root file system, no capabilities and no privilege escalation."""

    name: str
    image: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    command: Sequence[str] = ()  # default: the image's entrypoint
    args: Sequence[str] = ()
    env: Sequence[Manifest] = ()
    ports: Sequence[Manifest] = ()
    mounts: Sequence[Manifest] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """More fields under Kubernetes' names: probes, `lifecycle`, `restartPolicy`."""

    def manifest(self) -> Manifest:
        """The container for a pod's `spec`."""
        listed = {
            "command": self.command,
            "args": self.args,
            "env": self.env,
            "ports": self.ports,
            "volumeMounts": self.mounts,
        }
        return {
            "name": self.name,
            "image": self.image,
            "resources": {"requests": dict(self.requests), "limits": dict(self.limits)},
            "securityContext": container_security_context(),
            **{name: list(value) for name, value in listed.items() if value},
            **self.fields,
        }


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod at Pod Security level `restricted`, without a service account token."""

    account: str
    containers: Sequence[Manifest]
    volumes: Sequence[Manifest]
    first: Sequence[Manifest] = ()  # init containers and sidecars
    token: bool = False  # whether it calls the API server
    security: Mapping[str, Any] | None = None  # pod security context; default: the server's user
    fields: Mapping[str, Any] = field(default_factory=dict)
    """More fields under Kubernetes' names."""

    def spec(self) -> Manifest:
        """The pod's `spec`."""
        return {
            "automountServiceAccountToken": self.token,
            "enableServiceLinks": False,
            "serviceAccountName": self.account,
            "securityContext": dict(self.security or pod_security_context()),
            "containers": list(self.containers),
            "volumes": list(self.volumes),
            **({"initContainers": list(self.first)} if self.first else {}),
            **self.fields,
        }


def variables(
    fixed: Mapping[str, str],
    *,
    secrets: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> list[Manifest]:
    """Environment variables in a stable order: `fixed` by name, then `fields` (variable to pod field), then
    `secrets` (variable to Secret, key `value`)."""
    return [
        *({"name": name, "value": value} for name, value in sorted(fixed.items())),
        *(
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for name, path in (fields or {}).items()
        ),
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": "value"}}}
            for name, secret in (secrets or {}).items()
        ),
    ]


def mount(name: str, path: str, *, read_only: bool = False, folder: str | None = None) -> Manifest:
    """A volume mount; `folder`: its `subPath`."""
    stated: Manifest = {"name": name, "mountPath": path}
    if folder is not None:
        stated["subPath"] = folder
    return {**stated, "readOnly": True} if read_only else stated


def empty_dir(name: str, size: str, *, medium: str | None = None) -> Manifest:
    """An emptyDir volume; `medium`: `Memory` or a huge page size; `size`: a quantity."""
    return {"name": name, "emptyDir": {**({"medium": medium} if medium else {}), "sizeLimit": size}}


def claim(name: str, claim_name: str | None = None) -> Manifest:
    """A volume from a PersistentVolumeClaim, by default named like the volume.

    One per claim and pod: the kubelet mounts a claim once, under the first volume's name, and waits for ever
    for a second one (kubernetes/kubernetes#132921). What may not be written says so in its mounts.
    """
    return {"name": name, "persistentVolumeClaim": {"claimName": claim_name or name}}


def config_map(name: str, map_name: str, items: Sequence[Manifest] | None = None) -> Manifest:
    """A volume from a ConfigMap; `items`: keys with their paths, default all."""
    source: Manifest = {"name": map_name}
    return {"name": name, "configMap": {**source, "items": list(items)} if items is not None else source}


UNDISTURBED: Final[Mapping[str, str]] = {DO_NOT_DISRUPT: "true"}
"""Annotation of a pod that runs to its end: Karpenter does not move it to a cheaper node half-way."""


def one_off(spec: Mapping[str, Any], *, fatal: Sequence[Manifest] = ()) -> Manifest:
    """`spec` of a Job whose pods may be taken away by a drained or a lost node: that is no failure of theirs,
    and does not count against `backoffLimit`; `fatal`: further rules, of failures that no try can mend."""
    gone = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {**spec, "podFailurePolicy": {"rules": [gone, *fatal]}}


def spread(key: str, labels: Mapping[str, str], **fields: Any) -> Manifest:
    """A topology spread constraint: spread pods with `labels` over node label `key`, without blocking
    scheduling."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
        **fields,
    }
