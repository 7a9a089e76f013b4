"""How high a pool's limit must be so that every pod finds a place, however the scheduler has packed the
others.

Karpenter counts whole nodes against a limit, launches none that would exceed it, and moves no running model
to make room. Pods that share nodes therefore fragment them: two halves on two nodes of eight leave eight
accelerators free and no place for a pod of eight. What is computed here holds for every arrangement that can
arise, so no order of starts, stops and rollouts leaves a pod waiting for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from modelyard.planning.admission import PodRequest
from modelyard.planning.placement import Placement


@dataclass(frozen=True)
class PodKind:
    """Pods that the scheduler cannot tell apart: the same nodes admit them and they ask for the same.

    `node` is the number of accelerators of every admitting type, `asks` and `offers` are the amounts of a pod
    and of the smallest of these types.
    """

    instance_types: frozenset[str]
    node: int
    asks: tuple[int, ...]
    offers: tuple[int, ...]
    pods: int = 1
    """Pods of one replica, which start together or not at all."""

    @property
    def size(self) -> int:
        """Accelerators of one pod."""
        return self.asks[0]

    def share(self, other: PodKind) -> int:
        """What a pod of `other` takes of this kind's nodes, in accelerators: of the scarcest resource,
        rounded up."""
        pairs = zip(other.asks, self.offers, strict=True)
        return max(-(-self.node * asked // max(1, offered)) for asked, offered in pairs if asked)


Population = Mapping[PodKind, int]
"""Pods of each kind in one pool, when every model runs all its replicas."""


def pod_kind(request: PodRequest, placement: Placement, pods: int = 1) -> PodKind:
    """The kind of a model's pods.

    Raises:
        ValueError: no type admits them.
    """
    if placement.room is None:
        raise ValueError(f"pool {placement.pool_name} admits no such pod")
    return PodKind(
        frozenset(instance.name for instance in placement.instance_types),
        placement.cheapest.accelerator_count,
        request.amounts,
        placement.room.amounts,
        pods,
    )


def limit_for_all(population: Population) -> int:
    """Accelerators that the pool's limit must allow so that every pod of `population` finds a place."""
    return max((_limit_for(kind, population, pods - 1) for kind, pods in population.items()), default=0)


def limit_for_surge(kind: PodKind, population: Population) -> int:
    """Accelerators that the limit must allow so that one more pod of `kind` finds a place beside
    `population`.

    One surge is counted, not one for each model: models that roll out at the same time wait for each other.
    Whichever new pod runs becomes ready, an old one goes, and the rollout ends; with no new pod running, each
    of them fits.
    """
    grown = {**population, kind: population.get(kind, 0) + kind.pods - 1}
    return max(limit_for_all(population), _limit_for(kind, grown, grown[kind]))


def _limit_for(kind: PodKind, population: Population, twins: int) -> int:
    """The limit at which a pod of `kind` finds a place beside `twins` of its own and all others.

    It waits when every node that could admit it is too full and the limit allows no further one. Others hold
    at most one node each; those whose nodes admit this kind too can fill no more of them than their shares
    add up to.
    """
    held = grain = 0
    shares = []
    for other, pods in population.items():
        count = twins if other == kind else pods
        if count <= 0:
            continue
        if other.instance_types <= kind.instance_types:
            share = kind.share(other)
            grain = math.gcd(grain, share)
            shares.append((share, count))
        else:
            held += count * other.node
    full = kind.node - kind.share(kind) + 1  # a node with so much in use has no place left
    if grain:
        full = -(-full // grain) * grain
    filling = sum(min(share, full) * count for share, count in shares)
    return held + (filling // full + 1) * kind.node
