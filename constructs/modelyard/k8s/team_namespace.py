"""A namespace for a team's own workloads, with a share of the accelerators that is stated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from constructs import Construct

from modelyard.k8s.labels import TEAM, platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.model_namespace import security_levels
from modelyard.k8s.team_share import hard_accelerators


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
        labels = {**platform_labels("team"), TEAM: team}
        manifest(
            self,
            "Namespace",
            api_version="v1",
            kind="Namespace",
            name=name,
            labels={**labels, **security_levels()},
        )
        manifest(
            self,
            "Quota",
            api_version="v1",
            kind="ResourceQuota",
            name=f"{name}-accelerators",
            namespace=name,
            labels=labels,
            spec={"hard": hard_accelerators(pools, granted)},
        )
