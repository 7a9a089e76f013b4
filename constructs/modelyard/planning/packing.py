"""The limit a pool needs so that every pod can be scheduled, however the other pods are packed.

Karpenter counts whole nodes against a limit, launches none beyond it, and moves no running model to make
room. Pods that share nodes therefore fragment them: two pods of four on two nodes of eight leave eight
accelerators free but no room for a pod of eight. These limits hold for every possible arrangement, so no
order of starts, stops and rollouts leaves a pod Pending forever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from modelyard.planning.admission import PodRequest
from modelyard.planning.placement import Placement


@dataclass(frozen=True)
class PodKind:
    """Pods that are equal to the scheduler: the same instance types fit them and their requests are equal.

    `node`: accelerators of every fitting type. `asks` and `offers`: the pod's requests and the smallest
    fitting type's allocatable amounts.
    """

    instance_types: frozenset[str]
    node: int
    asks: tuple[int, ...]
    offers: tuple[int, ...]
    pods: int = 1
    """Pods per replica, which start together or not at all."""

    @property
    def size(self) -> int:
        """Accelerators of one pod."""
        return self.asks[0]

    def share(self, other: PodKind) -> int:
        """The accelerators of this kind's nodes that a pod of `other` blocks: by its scarcest resource,
        rounded up."""
        pairs = zip(other.asks, self.offers, strict=True)
        return max(-(-self.node * asked // max(1, offered)) for asked, offered in pairs if asked)


Population = Mapping[PodKind, int]
"""Pods of each kind in one pool with every model at maximum replicas."""


def pod_kind(request: PodRequest, placement: Placement, pods: int = 1) -> PodKind:
    """The kind of a model's pods.

    Raises:
        ValueError: no instance type fits the pod.
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
    """The pool limit, in accelerators, at which every pod of `population` can be scheduled."""
    return max((_limit_for(kind, population, pods - 1) for kind, pods in population.items()), default=0)


def limit_for_surge(kind: PodKind, population: Population) -> int:
    """The pool limit, in accelerators, at which one more pod of `kind` can be scheduled beside `population`.

    Only one surge counts, not one per model: concurrent rollouts wait for each other. Once a new pod is
    ready, its old pod is deleted and that rollout ends; while no new pod runs, each of them fits.
    """
    grown = {**population, kind: population.get(kind, 0) + kind.pods - 1}
    return max(limit_for_all(population), _limit_for(kind, grown, grown[kind]))


def _limit_for(kind: PodKind, population: Population, twins: int) -> int:
    """The limit at which a pod of `kind` can be scheduled beside `twins` of its own kind and all others.

    The pod is Pending when every node that fits its kind is too full and the limit allows no further node. A
    pod of another kind occupies at most one node; pods of kinds limited to the same nodes can fill only as
    many nodes as the sum of their shares.
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
    full = kind.node - kind.share(kind) + 1  # a node with this much in use has no room left
    if grain:
        full = -(-full // grain) * grain
    filling = sum(min(share, full) * count for share, count in shares)
    return held + (filling // full + 1) * kind.node
