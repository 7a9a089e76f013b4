"""Secrets by name: External Secrets copies them from AWS Secrets Manager, no value passes through Git."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest

STORE = "aws-secrets-manager"


def synchronized_secrets(
    *,
    namespace: str,
    region: str,
    secrets: Mapping[str, str],  # logical name to name in Secrets Manager
    readers: Sequence[str] = (),  # further namespaces that may read through the store
) -> Iterator[Manifest]:
    """A store and one ExternalSecret a logical name; pods find the value under key `value` of the Secret."""
    labels = platform_labels("secrets")
    yield manifest(
        api_version="external-secrets.io/v1",
        kind="ClusterSecretStore",
        name=STORE,
        labels=labels,
        spec={
            "provider": {"aws": {"service": "SecretsManager", "region": region}},
            # Only the models' namespace and those named may read through it.
            "conditions": [{"namespaces": [namespace, *readers]}],
        },
    )
    for name, key in sorted(secrets.items()):
        yield external_secret(name=name, namespace=namespace, key=key)


def external_secret(
    *,
    name: str,
    namespace: str,
    key: str,  # name in Secrets Manager
    certificate: bool = False,  # JSON with tls.crt and tls.key instead of one value
) -> Manifest:
    """A Secret that External Secrets keeps as it is in Secrets Manager."""
    data = [{"secretKey": "value", "remoteRef": {"key": key}}]
    target: dict[str, Any] = {"name": name, "creationPolicy": "Owner"}
    if certificate:
        parts = ("tls.crt", "tls.key")
        data = [{"secretKey": part, "remoteRef": {"key": key, "property": part}} for part in parts]
        target["template"] = {"type": "kubernetes.io/tls"}
    return manifest(
        api_version="external-secrets.io/v1",
        kind="ExternalSecret",
        name=name,
        namespace=namespace,
        labels=platform_labels("secrets"),
        spec={
            "refreshInterval": "1h",
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": STORE},
            "target": target,
            "data": data,
        },
    )
