"""No pod waits for ever: limits and strategies from the planner, run in a simulated cluster."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.planning.packing import PodKind, limit_for_all, limit_for_surge
from modelyard.planning.rollout import plan_rollout
from tests.property.cluster import Cluster, Deployment, NodeType

# Sizes of one pool's nodes as EC2 sells them. Types of one size differ in memory, the third amount.
TYPES = {
    name: NodeType(name, (count, 4 * count, memory))
    for name, count, memory in (
        ("one", 1, 32),
        ("one-large", 1, 64),
        ("four", 4, 128),
        ("four-large", 4, 256),
        ("eight", 8, 1024),
    )
}


@st.composite
def kinds(draw: st.DrawFn) -> PodKind:
    """Pods of any size up to a node, some of which need more CPU or memory than their share of it."""
    size = draw(st.sampled_from([1, 4, 8]))
    asks = (draw(st.integers(1, size)), draw(st.integers(1, 3 * size)), draw(st.integers(1, 64 * size)))
    fitting = [t for t in TYPES.values() if t.has[0] == size and all(map(int.__le__, asks, t.has))]
    if not fitting:
        asks, fitting = (1, 1, 1), [TYPES["one"]]
    least = tuple(map(min, *(t.has for t in fitting))) if len(fitting) > 1 else fitting[0].has
    return PodKind(frozenset(t.name for t in fitting), fitting[0].has[0], asks, least)


models = st.tuples(
    kinds(), st.lists(st.integers(0, 3), min_size=1, max_size=3), st.sampled_from(["auto", "in-place"])
)


@settings(max_examples=400, deadline=None)
@given(
    asked=st.lists(models, min_size=1, max_size=4), spare=st.integers(0, 9), seed=st.integers(0, 1_000_000)
)
def test_all_models_roll_out_at_once_from_any_number_of_replicas(
    asked: list[tuple[PodKind, list[int], str]], spare: int, seed: int
) -> None:
    population: Counter[PodKind] = Counter()
    for kind, steps, _ in asked:
        population[kind] += max(1, *steps)
    limit = limit_for_all(population) + spare
    deployments = []
    for number, (kind, steps, wanted) in enumerate(asked):
        rollout = plan_rollout(
            wanted=wanted,
            replicas=min(steps),
            limit=limit,
            surge_limit=limit_for_surge(kind, population),
        )
        assert rollout is not None
        types = [TYPES[name] for name in sorted(kind.instance_types)]
        deployments.append(
            Deployment(str(number), types, kind.asks, rollout.max_surge, rollout.max_unavailable, list(steps))
        )
    cluster = Cluster(limit, deployments, random.Random(seed))

    assert cluster.settle()
    for deployment, (_, steps, _) in zip(deployments, asked, strict=True):
        deployment.steps = [deployment.replicas, *reversed(steps)]
    assert cluster.roll_out()


@settings(max_examples=150, deadline=None)
@given(kind=kinds(), pods=st.integers(1, 12), wanted=st.sampled_from(["auto", "surge", "in-place"]))
def test_a_pool_of_equal_pods_needs_no_more_than_full_nodes(kind: PodKind, pods: int, wanted: str) -> None:
    """Equal pods that divide the node cannot fragment it, so the computed limit is exact."""
    population = {kind: pods}
    each = max(1, kind.node // kind.share(kind))
    exact = -(-pods // each) * kind.node

    assert limit_for_all(population) == exact
    rollout = plan_rollout(
        wanted=wanted, replicas=pods, limit=exact, surge_limit=limit_for_surge(kind, population)
    )
    free = each * (exact // kind.node) - pods
    assert (rollout is None) == (wanted == "surge" and not free)
    if rollout is not None:
        assert rollout.max_surge + rollout.max_unavailable == 1
        assert bool(rollout.max_surge) == (wanted != "in-place" and free > 0)


def deployment(asks: int, replicas: int, *, size: int = 8, surge: bool = True) -> Deployment:
    kind = NodeType(str(size), (size,))
    return Deployment("m", [kind], (asks,), int(surge), int(not surge), [replicas])


def test_the_cluster_in_small_can_get_stuck() -> None:
    """What the planner must never allow: a surge into a full node, and halves of two nodes before a whole
    one."""
    full = Cluster(8, [deployment(8, 1)], random.Random(0))
    assert full.settle()
    assert not full.roll_out()

    runs = [Cluster(16, [deployment(4, 2), deployment(8, 1)], random.Random(seed)) for seed in range(20)]
    assert not all(run.settle() for run in runs)


def test_fragments_count() -> None:
    """Four and four on nodes of eight, and one of eight: 16 by arithmetic of accelerators, 24 in every
    arrangement."""
    half, whole = (PodKind(frozenset({"eight"}), 8, (size,), (8,)) for size in (4, 8))

    assert limit_for_all({half: 2, whole: 1}) == 24
    assert limit_for_all({half: 2}) == 8
    assert limit_for_surge(half, {half: 3}) == 16
    assert limit_for_surge(whole, {whole: 1}) == 16


def test_a_node_that_another_model_chose_may_be_too_small() -> None:
    """Two small pods can hold two small nodes, of which neither admits a pod that needs the larger type."""
    small = PodKind(frozenset({"four", "four-large"}), 4, (1, 1, 1), (4, 16, 128))
    large = PodKind(frozenset({"four-large"}), 4, (1, 1, 200), (4, 16, 256))

    assert limit_for_all({small: 2, large: 1}) == 12
