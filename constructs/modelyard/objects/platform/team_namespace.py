"""A namespace for a team's own workloads, with an accelerator quota and traffic denied by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modelyard.names import TEAM_LABEL
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import GATEWAYS, dns, pods_of
from modelyard.objects.platform.team_share import hard_accelerators
from modelyard.objects.pods.security import security_levels


def team_namespace(
    *,
    name: str,
    team: str,
    pools: Iterable[str],  # accelerators that the environment's pools have
    granted: Mapping[str, int],  # accelerator to count
    models: str = "models",  # namespace of the models
    monitoring: str | None = None,  # namespace of Prometheus
    auto_mode: bool = False,
) -> Iterator[Manifest]:
    """Namespace at Pod Security level `restricted`; its pods can use only the accelerators that the
    environment grants.

    Without a policy of their own, its pods talk to each other, DNS, models and gateways, and only Prometheus
    reaches them from outside. Access to the namespace is an access entry of the cluster, not an object here.
    """
    labels = {**platform_labels("team"), TEAM_LABEL: team}
    yield manifest(
        api_version="v1",
        kind="Namespace",
        name=name,
        labels={**labels, **security_levels()},
    )
    yield manifest(
        api_version="v1",
        kind="ResourceQuota",
        name=f"{name}-notebooks",  # TEAM-accelerators is the quota of its models
        namespace=name,
        labels=labels,
        spec={"hard": hard_accelerators(pools, granted)},
    )
    both = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    inside: dict[str, Any] = {"podSelector": {}}
    callers = [inside, *([pods_of(monitoring, {})] if monitoring else [])]
    # The models' own policies decide who may call them.
    reached = [inside, pods_of(models, {}), pods_of(GATEWAYS, {})]
    yield _policy(name, labels, f"{name}-default-deny", both)
    yield _policy(
        name,
        labels,
        f"{name}-team",
        {**both, "ingress": [{"from": callers}], "egress": [dns(auto_mode=auto_mode), {"to": reached}]},
    )


def _policy(namespace: str, labels: Mapping[str, str], name: str, spec: Mapping[str, Any]) -> Manifest:
    return manifest(
        api_version="networking.k8s.io/v1",
        kind="NetworkPolicy",
        name=name,
        namespace=namespace,
        labels=labels,
        spec=spec,
    )
