"""The namespace of the models: restricted, default-deny, with its own PriorityClasses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.names import CHECKS_ACCOUNT
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import ENDPOINT_CHECK, check_egress, credentials, name_resolution
from modelyard.objects.platform.priority import model_priorities
from modelyard.objects.pods.security import security_levels
from modelyard.planning import OURS, Runner
from modelyard.spec import Environment


def model_namespace(environment: Environment, runner: Runner = OURS) -> Iterator[Manifest]:
    """Namespace at Pod Security level `restricted`, with traffic denied unless a policy allows it; `runner`
    starts the servers that Jobs call."""
    name = environment.namespace
    yield manifest(
        api_version="v1",
        kind="Namespace",
        name=name,
        labels={**platform_labels("namespace"), **security_levels()},
    )
    yield _policy(name, "default-deny", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
    yield _policy(
        name,
        "weights-fetch",
        {
            "podSelector": {"matchLabels": {"app.kubernetes.io/component": "weights-fetch"}},
            "policyTypes": ["Egress"],
            # The Hub and the package index have no fixed addresses.
            "egress": [
                name_resolution(environment),
                {"ports": [{"port": 443, "protocol": "TCP"}]},
                *([credentials()] if environment.readable_buckets else []),
            ],
        },
    )
    if environment.checks.enabled:  # allow Jobs to call the models
        yield _policy(
            name,
            CHECKS_ACCOUNT,
            {
                "podSelector": {"matchLabels": {"app.kubernetes.io/component": ENDPOINT_CHECK}},
                "policyTypes": ["Egress"],
                "egress": check_egress(environment, runner),
            },
        )
    yield from model_priorities()


def _policy(namespace: str, name: str, spec: dict[str, Any]) -> Manifest:
    return manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        name=name,
        namespace=namespace,
        labels=platform_labels("network"),
        spec=spec,
    )
