"""Pods and their parts: hardened unless a part says otherwise, for servers, routers, proxies and jobs
alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelyard.objects.manifest import Manifest
from modelyard.objects.pods.security import container_security_context, pod_security_context


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container with a read-only root, no capabilities and no way to gain privileges."""

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
    """Further fields with Kubernetes' own names: probes, `lifecycle`, `restartPolicy`."""

    def manifest(self) -> Manifest:
        """The container as it stands in a pod."""
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
    """A pod at Pod Security level `restricted`, without a token of the API server."""

    account: str
    containers: Sequence[Manifest]
    volumes: Sequence[Manifest]
    first: Sequence[Manifest] = ()  # init containers and sidecars
    token: bool = False  # whether it talks to the API server
    security: Mapping[str, Any] | None = None  # of the pod; default: the server's user and no other
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields with Kubernetes' own names."""

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
    """Environment variables in a stable order: fixed ones by name, then `fields` (variable to field of the
    pod), then `secrets` (variable to Secret, whose key is `value`)."""
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
    """A volume in a container; `folder` is the part of it that is seen."""
    stated: Manifest = {"name": name, "mountPath": path}
    if folder is not None:
        stated["subPath"] = folder
    return {**stated, "readOnly": True} if read_only else stated


def empty_dir(name: str, size: str, *, medium: str | None = None) -> Manifest:
    """A volume of the pod's own; `medium` is `Memory` or a size of huge pages, and `size` a quantity."""
    return {"name": name, "emptyDir": {**({"medium": medium} if medium else {}), "sizeLimit": size}}


def claim(name: str, claim_name: str | None = None, *, read_only: bool = False) -> Manifest:
    """A volume of a PersistentVolumeClaim, by default of the volume's own name."""
    source: Manifest = {"claimName": claim_name or name}
    return {"name": name, "persistentVolumeClaim": {**source, "readOnly": True} if read_only else source}


def config_map(name: str, map_name: str, items: Sequence[Manifest] | None = None) -> Manifest:
    """A volume of a ConfigMap; `items` are its keys with their paths, all of them where none are named."""
    source: Manifest = {"name": map_name}
    return {"name": name, "configMap": {**source, "items": list(items)} if items is not None else source}


def spread(key: str, labels: Mapping[str, str], **fields: Any) -> Manifest:
    """A topology spread constraint: pods with `labels` over the values of node label `key`, but rather
    together than waiting."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
        **fields,
    }
