"""Secrets by name: External Secrets copies them from AWS Secrets Manager, no value passes through Git."""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest

STORE = "aws-secrets-manager"


class SynchronizedSecrets(Construct):
    """A store and one ExternalSecret a logical name; pods find the value under key `value` of the Secret."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        region: str,
        secrets: Mapping[str, str],  # logical name to name in Secrets Manager
    ) -> None:
        super().__init__(scope, construct_id)
        labels = platform_labels("secrets")
        manifest(
            self,
            "Store",
            api_version="external-secrets.io/v1",
            kind="ClusterSecretStore",
            name=STORE,
            labels=labels,
            spec={
                "provider": {"aws": {"service": "SecretsManager", "region": region}},
                # Only the models' namespace may read through it.
                "conditions": [{"namespaces": [namespace]}],
            },
        )
        for name, key in sorted(secrets.items()):
            manifest(
                self,
                name,
                api_version="external-secrets.io/v1",
                kind="ExternalSecret",
                name=name,
                namespace=namespace,
                labels=labels,
                spec={
                    "refreshInterval": "1h",
                    "secretStoreRef": {"kind": "ClusterSecretStore", "name": STORE},
                    "target": {"name": name, "creationPolicy": "Owner"},
                    "data": [{"secretKey": "value", "remoteRef": {"key": key}}],
                },
            )
