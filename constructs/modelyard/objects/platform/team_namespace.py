"""A namespace for a team's own workloads, with an accelerator quota."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from modelyard.names import TEAM_LABEL
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.team_share import hard_accelerators
from modelyard.objects.pods.security import security_levels


def team_namespace(
    *,
    name: str,
    team: str,
    pools: Iterable[str],  # accelerators that the environment's pools have
    granted: Mapping[str, int],  # accelerator to count
) -> Iterator[Manifest]:
    """Namespace at Pod Security level `restricted`; its pods can use only the accelerators that the
    environment grants.

    Access to it is an access entry of the cluster, not an object here.
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
