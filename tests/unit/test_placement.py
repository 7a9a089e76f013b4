"""A model's nodes, rollout, start-up and cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.hardware import Memory, Prices, platform_facts
from modelyard.memory.serving import Serving
from modelyard.planning import ModelPlan
from modelyard.planning.admission import PodRequest
from modelyard.planning.cost import nodes_for
from modelyard.planning.placement import Placement, place, pod_request
from modelyard.planning.rollout import plan_rollout
from modelyard.spec import Environment
from tests.unit.given import a_model, a_plan, an_environment, served


def a_request(**changes: Any) -> PodRequest:
    """What one GPU's pod asks for: 2 CPU, 11 GiB."""
    serving = served(a_model())
    assert isinstance(serving, Serving)
    return replace(pod_request(serving), **changes)


def a_pool(**changes: Any) -> Environment:
    return an_environment(pools={"gpu": {"accelerator": "l40s", "limit": 64} | changes})


def placed(environment: Environment | None = None, **changes: Any) -> Placement:
    chosen = environment or a_pool()
    return place(a_request(**changes), "gpu", chosen, Prices(chosen.region))


def planned(environment: Environment | None = None, **changes: Any) -> ModelPlan:
    [only] = a_plan(a_model(**changes), environment=environment).models
    return only


def names(placement: Placement) -> list[str]:
    return [instance.name for instance in placement.instance_types]


def test_a_replica_never_buys_more_gpus_than_it_needs() -> None:
    placement = placed()

    assert {t.accelerator_count for t in placement.instance_types} == {1}
    assert names(placement)[0] == "g6e.xlarge"
    assert ("g6e.12xlarge", "4 GPUs where 1 suffice") in {
        (r.instance_type, r.reason) for r in placement.rejections
    }


def test_two_gpus_take_a_node_of_four() -> None:
    assert names(placed(accelerators=2)) == ["g6e.12xlarge", "g6e.24xlarge"]


def test_prices_decide_among_types_that_admit() -> None:
    prices = [t.shipped_price("us-east-2").usd_per_hour or 0 for t in placed().instance_types]

    assert prices == sorted(prices)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"memory": Memory.gib(30)}, "of memory free of DaemonSets"),
        ({"cpu_milli": 3900}, "CPU free of DaemonSets"),
        ({"accelerators": 4}, "has 1 of 4 GPUs"),
    ],
)
def test_a_type_that_is_too_small_says_what_is_missing(asked: dict[str, Any], reason: str) -> None:
    [miss] = [r for r in placed(**asked).rejections if r.instance_type == "g6e.xlarge"]

    assert reason in miss.reason


def test_daemonsets_count_before_the_pod() -> None:
    """3920 m and 29317 MiB are allocatable on g6e.xlarge; the platform's DaemonSets take their part of
    both."""
    facts = platform_facts()
    cpu, memory = 3920 - facts.daemon_cpu_milli, Memory.mib(29317) - facts.daemon_memory

    assert "g6e.xlarge" in names(placed(cpu_milli=cpu, memory=memory))
    assert "g6e.xlarge" not in names(placed(cpu_milli=cpu + 1))
    assert "g6e.xlarge" not in names(placed(memory=memory + Memory.bytes(1)))


def test_of_two_pools_the_cheaper_one_is_taken() -> None:
    pools = {
        name: {"accelerator": "l40s", "instanceTypes": types, "limit": 8}
        for name, types in (("wide", ["g6e.8xlarge"]), ("slim", ["g6e.xlarge"]), ("mid", ["g6e.4xlarge"]))
    }

    assert planned(an_environment(pools=pools)).placement.pool_name == "slim"


@pytest.mark.parametrize(
    ("pool", "reason"),
    [
        ({"instanceTypes": ["p5.4xlarge"]}, "has h100, not l40s"),
        ({"accelerator": "trn2", "instanceTypes": ["trn2.3xlarge"]}, "is not offered in us-east-2"),
    ],
)
def test_a_type_that_cannot_be_had_says_why(pool: dict[str, Any], reason: str) -> None:
    placement = placed(environment=a_pool(**pool))

    assert names(placement) == []
    assert [r.reason for r in placement.rejections] == [reason]


def test_shared_memory_is_part_of_the_memory_request() -> None:
    alone, four = pod_request(planned().serving), pod_request(planned(accelerator="l40s:4").serving)

    assert (alone.shm, four.shm) == (Memory.gib(2), Memory.gib(8))
    assert alone.memory == Memory.gib(5 + 4 + 2)
    assert four.memory == Memory.gib(5 + 4 * 4 + 8)


def test_auto_takes_the_cheapest_accelerator_that_fits() -> None:
    pools = {
        "h100": {"accelerator": "h100", "limit": 16},
        "l4": {"accelerator": "l4", "limit": 16},
        "l40s": {"accelerator": "l40s", "limit": 16},
    }
    environment = an_environment(pools=pools)

    small = planned(environment, model="hf://Qwen/Qwen3-4B", accelerator="auto")
    large = planned(environment, accelerator="auto")

    assert (small.placement.pool_name, small.serving.count) == ("l4", 1)
    assert (large.placement.pool_name, large.serving.count) == ("l40s", 1)


@pytest.mark.parametrize(
    ("wanted", "limit", "expected"),
    [
        ("auto", 16, ("surge", 1, 0)),
        ("auto", 15, ("in-place", 0, 1)),
        ("surge", 16, ("surge", 1, 0)),
        ("in-place", 99, ("in-place", 0, 1)),
    ],
)
def test_a_rollout_surges_only_where_one_more_replica_fits(
    wanted: str, limit: int, expected: tuple[str, int, int]
) -> None:
    rollout = plan_rollout(wanted=wanted, replicas=2, limit=limit, surge_limit=16)

    assert rollout is not None
    assert (rollout.strategy, rollout.max_surge, rollout.max_unavailable) == expected
    assert not rollout.interrupts


def test_a_surge_without_room_is_refused_rather_than_stuck() -> None:
    assert plan_rollout(wanted="surge", replicas=2, limit=15, surge_limit=16) is None


@pytest.mark.parametrize(("replicas", "interrupts"), [(0, True), (1, True), (2, False)])
def test_replacing_the_only_replica_in_place_interrupts(replicas: int, interrupts: bool) -> None:
    rollout = plan_rollout(wanted="auto", replicas=replicas, limit=1, surge_limit=2)

    assert rollout is not None
    assert rollout.interrupts is interrupts


@pytest.mark.parametrize(
    ("replicas", "limit", "strategy"),
    [
        (1, 8, "surge"),  # the new replica takes the free half of the node that the old one is on
        (2, 8, "in-place"),
        (2, 12, "in-place"),  # four accelerators to spare are no node of eight
        (2, 16, "surge"),
    ],
)
def test_room_for_a_surge_is_counted_in_whole_nodes(replicas: int, limit: int, strategy: str) -> None:
    """Replicas of four H100 on nodes of eight."""
    pools = {"p5": {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": limit}}
    model = {"accelerator": "h100:4", "replicas": replicas, "availability": "single"}

    assert planned(an_environment(pools=pools), **model).rollout.strategy == strategy


@pytest.mark.parametrize(
    ("replicas", "accelerators", "per_node", "zones", "nodes"),
    [(2, 1, 1, 3, 2), (2, 4, 8, 1, 1), (2, 4, 8, 3, 2), (5, 2, 8, 1, 2), (0, 1, 8, 3, 0), (9, 1, 8, 2, 2)],
)
def test_nodes_are_packed_as_densely_as_zones_allow(
    replicas: int, accelerators: int, per_node: int, zones: int, nodes: int
) -> None:
    assert nodes_for(replicas, accelerators=accelerators, per_node=per_node, zones=zones) == nodes


def test_the_cost_is_nodes_times_price() -> None:
    cost = planned(replicas={"min": 2, "max": 4}).cost

    assert cost.floor == pytest.approx(2 * 1.861)
    assert cost.ceiling == pytest.approx(4 * 7.57719)


def test_a_type_without_a_price_costs_an_unknown_amount() -> None:
    environment = a_pool(accelerator="trn2", capacity=["reserved"], reservations=["cr-0123456789abcdef0"])
    model = {"model": "hf://Qwen/Qwen3-8B", "accelerator": "trn2", "engine": {"maxModelLen": 8192}}

    plan = a_plan(a_model(**model), environment=environment)

    assert (plan.models[0].cost.floor, plan.models[0].cost.ceiling) == (None, None)
    assert plan.unpriced == ("qwen",)
    assert plan.floor == 0


def test_loading_has_time_to_finish() -> None:
    startup = planned(
        model="hf://meta-llama/Llama-3.3-70B-Instruct",
        accelerator="l40s:8",
        access={},
        environment=an_environment(secrets={"hf-token": "x"}),
    ).startup

    assert startup.budget >= 1.5 * (startup.load + startup.compile)
    assert startup.deadline > startup.budget + startup.node + startup.image + startup.fetch


def test_a_small_model_still_gets_ten_minutes() -> None:
    assert planned(model="hf://Qwen/Qwen3-0.6B").startup.budget == 600


def test_replicas_that_start_together_share_what_lustre_gives() -> None:
    """2,400 GiB are 2.34 TiB, of 250 MB/s each: 559 MiB/s. EFS gives every node its own."""

    def load(replicas: int, **cache: Any) -> int:
        environment = an_environment(cache=cache)
        return planned(model="hf://Qwen/Qwen3-8B", replicas=replicas, environment=environment).startup.load

    efs = load(1)
    assert load(4) == load(1, fileSystem="s3-files") == efs
    one = load(1, fileSystem="lustre")
    assert one == pytest.approx(efs * 350 / 559, abs=1)
    assert load(4, fileSystem="lustre") == pytest.approx(4 * one, abs=3)
    # A large file system is faster than the network of a node.
    assert load(4, fileSystem="lustre", sizeGib=48_000) == pytest.approx(efs * 350 / 1200, abs=1)
