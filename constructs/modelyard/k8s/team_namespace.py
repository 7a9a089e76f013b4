"""A namespace for a team's own workloads, with a share of the accelerators that is stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from constructs import Construct

from modelyard.hardware import accelerator_of
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.model_namespace import security_levels


class TeamNamespace(Construct):
    """Namespace at Pod Security level `restricted` whose pods hold no accelerator that the environment does not grant.

    Who may enter it is an access entry of the cluster, not an object here.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        team: str,
        pools: Iterable[str],  # accelerators that the environment's pools have
        granted: Mapping[str, int],  # accelerator to how many
    ) -> None:
        super().__init__(scope, construct_id)
        labels = {**platform_labels("team"), "modelyard.dev/team": team}
        manifest(
            self,
            "Namespace",
            api_version="v1",
            kind="Namespace",
            name=name,
            labels={**labels, **security_levels()},
        )
        # A quota counts resources, and all GPUs are one resource, whatever their kind.
        hard = Counter({accelerator_of(kind).resource: 0 for kind in pools if kind != "none"})
        for kind, count in granted.items():
            hard[accelerator_of(kind).resource] += count
        manifest(
            self,
            "Quota",
            api_version="v1",
            kind="ResourceQuota",
            name=f"{name}-accelerators",
            namespace=name,
            labels=labels,
            spec={"hard": {f"requests.{name}": str(count) for name, count in sorted(hard.items())}},
        )
