"""The namespace of the models: restricted, closed by default, with a priority of its own."""

from __future__ import annotations

from typing import Any

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.priority import ModelPriorities
from modelyard.k8s.server_network import ENDPOINT_CHECK, check_egress, name_resolution
from modelyard.spec import Environment


def security_levels(level: str = "restricted") -> dict[str, str]:
    """Labels of a namespace at a Pod Security level."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}


class ModelNamespace(Construct):
    """Namespace at Pod Security level `restricted`, with traffic denied unless a policy allows it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
    ) -> None:
        super().__init__(scope, construct_id)
        name = environment.namespace
        manifest(
            self,
            "Namespace",
            api_version="v1",
            kind="Namespace",
            name=name,
            labels={**platform_labels("namespace"), **security_levels()},
        )
        self._policy(name, "default-deny", {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
        self._policy(
            name,
            "weights-fetch",
            {
                "podSelector": {"matchLabels": {"app.kubernetes.io/component": "weights-fetch"}},
                "policyTypes": ["Egress"],
                # The Hub and the package index have no fixed addresses.
                "egress": [name_resolution(environment), {"ports": [{"port": 443, "protocol": "TCP"}]}],
            },
        )
        if environment.checks.enabled:  # let jobs ask the models
            self._policy(
                name,
                "endpoint-checks",
                {
                    "podSelector": {"matchLabels": {"app.kubernetes.io/component": ENDPOINT_CHECK}},
                    "policyTypes": ["Egress"],
                    "egress": check_egress(environment),
                },
            )
        ModelPriorities(self, "Priorities")

    def _policy(self, namespace: str, name: str, spec: dict[str, Any]) -> None:
        manifest(
            self,
            "".join(part.capitalize() for part in name.split("-")),
            api_version="networking.k8s.io/v1",
            kind="NetworkPolicy",
            name=name,
            namespace=namespace,
            labels=platform_labels("network"),
            spec=spec,
        )
