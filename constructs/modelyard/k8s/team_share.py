"""What a team's models may hold of the accelerators, guarded by the API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from constructs import Construct

from modelyard.hardware import accelerator_of
from modelyard.k8s.labels import TEAM, platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.priority import ModelPriorities


class TeamShare(Construct):
    """PriorityClasses of a team's models, and a ResourceQuota in the models' namespace that counts their pods alone.

    A quota has no other way to tell pods of one namespace apart. The documentation lists CPU, memory and pods for the scope
    PriorityClass; the API server refuses it only for other *standard* resources, and its evaluator counts extended ones
    (`validateScopedResourceSelectorRequirement` and `isExtendedResourceNameForQuota` in Kubernetes' source).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        namespace: str,
        team: str,
        pools: Iterable[str],  # accelerators that the environment's pools have
        granted: Mapping[str, int],  # accelerator to how many
        rollouts: Mapping[str, int],  # accelerator to how many more while replicas are replaced
    ) -> None:
        super().__init__(scope, construct_id)
        priorities = ModelPriorities(self, "Priorities", team=team)
        # Without the room of a rollout its new replica would wait for an old one, which waits for the new.
        hard = hard_accelerators(pools, granted, rollouts)
        manifest(
            self,
            "Quota",
            api_version="v1",
            kind="ResourceQuota",
            name=f"{team}-accelerators",
            namespace=namespace,
            labels={**platform_labels("team"), TEAM: team},
            spec={
                "hard": hard,
                "scopeSelector": {
                    "matchExpressions": [
                        {
                            "scopeName": "PriorityClass",
                            "operator": "In",
                            "values": list(priorities.names),
                        }
                    ]
                },
            },
        )


def hard_accelerators(pools: Iterable[str], *counts: Mapping[str, int]) -> dict[str, str]:
    """`spec.hard` of a ResourceQuota: the sums of `counts` by accelerator, and none of what else `pools` have.

    A quota counts resources, and all GPUs are one resource, whatever their kind.
    """
    hard = Counter({accelerator_of(kind).resource: 0 for kind in pools if kind != "none"})
    for granted in counts:
        for kind, count in granted.items():
            hard[accelerator_of(kind).resource] += count
    return {f"requests.{name}": str(count) for name, count in sorted(hard.items())}
