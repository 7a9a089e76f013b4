"""What a team's models may hold of the accelerators, guarded by the API server."""

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
    granted: Mapping[str, int],  # accelerator to how many
    rollouts: Mapping[str, int],  # accelerator to how many more while replicas are replaced
) -> Iterator[Manifest]:
    """PriorityClasses of a team's models, and a ResourceQuota in the models' namespace that counts their pods
    alone.

    A quota has no other way to tell pods of one namespace apart. The documentation lists CPU, memory and pods
    for the scope PriorityClass; the API server refuses it only for other *standard* resources, and its
    evaluator counts extended ones (`validateScopedResourceSelectorRequirement` and
    `isExtendedResourceNameForQuota` in Kubernetes' source).
    """
    yield from model_priorities(team)
    # Without the room of a rollout its new replica would wait for an old one, which waits for the new.
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
    """`spec.hard` of a ResourceQuota: the sums of `counts` by accelerator, and none of what else `pools`
    have.

    A quota counts resources, and all GPUs are one resource, whatever their kind.
    """
    hard = Counter({accelerator_of(kind).resource: 0 for kind in pools if kind != "none"})
    for granted in counts:
        for kind, count in granted.items():
            hard[accelerator_of(kind).resource] += count
    return {f"requests.{name}": str(count) for name, count in sorted(hard.items())}
