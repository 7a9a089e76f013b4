"""Secrets by name: External Secrets copies them from AWS Secrets Manager; no value is in Git."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest

# Of the whole cluster, where `aws-secrets-manager` may be somebody else's.
STORE = "modelyard-secrets"


def synchronized_secrets(
    *,
    namespace: str,
    region: str,
    secrets: Mapping[str, str],  # logical name to name in Secrets Manager
    readers: Sequence[str] = (),  # other namespaces that may use the store
    role: str | None = None,  # ARN of the role that it assumes; default: its own identity
) -> Iterator[Manifest]:
    """A SecretStore and one ExternalSecret per logical name; the Secret has the value under key `value`."""
    labels = platform_labels("secrets")
    yield manifest(
        api_version="external-secrets.io/v1",
        kind="ClusterSecretStore",
        name=STORE,
        labels=labels,
        spec={
            "provider": {
                "aws": {"service": "SecretsManager", "region": region, **({"role": role} if role else {})}
            },
            # Only the models' namespace and `readers` may use it.
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
    """A Secret that External Secrets keeps in sync with Secrets Manager."""
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
