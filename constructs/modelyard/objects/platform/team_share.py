"""The accelerator quota of a team's models, enforced by the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from modelyard.hardware import accelerator_of
from modelyard.names import TEAM_LABEL
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.priority import model_priorities, priority_names


def team_share(
    *,
    namespace: str,
    team: str,
    pools: Iterable[str],  # accelerators that the environment's pools have
    granted: Mapping[str, int],  # accelerator to count
    rollouts: Mapping[str, int],  # accelerator to the surge of a rollout
) -> Iterator[Manifest]:
    """PriorityClasses for a team's models, and a ResourceQuota in the models' namespace that counts only
    their pods.

    Only a quota scope can tell pods of one namespace apart. The documentation lists CPU, memory and pods for
    scope PriorityClass; the API server rejects only other *standard* resources, and its evaluator counts
    extended resources (`validateScopedResourceSelectorRequirement` and `isExtendedResourceNameForQuota` in
    Kubernetes' source).
    """
    yield from model_priorities(team)
    # Without quota for the surge, the new replica would wait for the old one, which waits for the new one.
    hard = hard_accelerators(pools, granted, rollouts)
    yield manifest(
        api_version="v1",
        kind="ResourceQuota",
        name=f"{team}-accelerators",
        namespace=namespace,
        labels={**platform_labels("team"), TEAM_LABEL: team},
        spec={
            "hard": hard,
            "scopeSelector": {
                "matchExpressions": [
                    {
                        "scopeName": "PriorityClass",
                        "operator": "In",
                        "values": list(priority_names(team)),
                    }
                ]
            },
        },
    )


def hard_accelerators(pools: Iterable[str], *counts: Mapping[str, int]) -> dict[str, str]:
    """`spec.hard` of a ResourceQuota: the sums of `counts` per accelerator, and 0 for the other accelerators
    of `pools`.

    A quota counts resources, and all GPU models are one resource.
    """
    hard = Counter({accelerator_of(kind).resource: 0 for kind in pools if kind != "none"})
    for granted in counts:
        for kind, count in granted.items():
            hard[accelerator_of(kind).resource] += count
    return {f"requests.{name}": str(count) for name, count in sorted(hard.items())}
