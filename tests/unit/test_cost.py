"""Cost by capacity type, stranded cost and quota usage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from modelyard.hardware import Prices
from modelyard.hardware.prices import RegionPrices
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.cost import packed_nodes
from modelyard.spec import Environment
from tests.unit.given import REGION, Modelyard, a_model, a_plan, an_environment

RESERVATION = "cr-0123456789abcdef0"
RESERVED = {"capacity": ["reserved"], "reservations": [RESERVATION]}
LARGE = {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": 64}
SMALL = {"accelerator": "l40s", "instanceTypes": ["g6e.xlarge"], "limit": 64}
G6E_XLARGE = 1.861  # us-east-2
P5_48XLARGE = 55.04


def lab(**changes: Any) -> Environment:
    """One pool; g6e.xlarge unless `changes` say otherwise."""
    return an_environment(pools={"gpu": SMALL | changes})


def planned(environment: Environment, **changes: Any) -> ModelPlan:
    [only] = a_plan(a_model(**changes), environment=environment).models
    return only


def by_capacity(plan: ModelPlan) -> dict[str, tuple[Any, Any]]:
    """Floor and ceiling."""
    return {cost.capacity: (cost.floor, cost.ceiling) for cost in plan.cost.by_capacity}


def test_on_demand_costs_the_list_price() -> None:
    plan = planned(lab(), replicas={"min": 2, "max": 4})

    assert by_capacity(plan) == {"on-demand": (pytest.approx(2 * G6E_XLARGE), pytest.approx(4 * G6E_XLARGE))}
    assert not plan.cost.floor_at_most


def test_what_spot_costs_at_least_is_not_known_but_what_it_costs_at_most_is() -> None:
    plan = planned(lab(capacity=["spot", "on-demand"]))

    assert by_capacity(plan)["spot"] == (None, pytest.approx(2 * G6E_XLARGE))
    assert plan.cost.floor == pytest.approx(2 * G6E_XLARGE)
    assert plan.cost.floor_at_most


def test_a_stated_price_is_taken_at_its_word() -> None:
    prices = {"g6e.xlarge": {"spot": 0.8, "on-demand": 1.5}}
    plan = planned(lab(capacity=["spot", "on-demand"], prices=prices))

    assert by_capacity(plan) == {"spot": (1.6, 1.6), "on-demand": (3.0, 3.0)}
    assert (plan.cost.floor, plan.cost.ceiling) == (1.6, 3.0)
    assert not plan.cost.floor_at_most
    assert plan.cost.by_capacity[0].basis == "stated in the environment file"


def test_a_price_stated_for_one_type_says_nothing_of_another() -> None:
    prices = {"g6e.xlarge": {"spot": 0.8}}
    plan = planned(lab(capacity=["spot"], instanceTypes=["g6e.xlarge", "g6e.2xlarge"], prices=prices))

    assert by_capacity(plan)["spot"][0] is None
    assert plan.cost.floor_at_most


def test_a_reservation_is_billed_used_or_not() -> None:
    [reserved] = planned(lab(**RESERVED)).cost.by_capacity

    assert reserved.committed
    assert reserved.floor == reserved.ceiling == pytest.approx(2 * G6E_XLARGE)
    assert "used or not" in reserved.basis


def test_a_capacity_block_without_a_stated_price_has_none() -> None:
    pool = {"accelerator": "trn2", "limit": 64, "instanceTypes": ["trn2.48xlarge"]} | RESERVED
    model = {"model": "hf://Qwen/Qwen3-8B", "accelerator": "trn2", "engine": {"maxModelLen": 8192}}

    unknown = planned(an_environment(pools={"trn2": pool}), **model)
    stated = planned(
        an_environment(pools={"trn2": pool | {"prices": {"trn2.48xlarge": {"reserved": 20.0}}}}), **model
    )

    assert (unknown.cost.floor, unknown.cost.stranded, unknown.cost.usd_per_replica) == (None, None, None)
    assert "no public price" in unknown.cost.by_capacity[0].basis
    assert stated.cost.floor == 20.0 * stated.cost.nodes_floor


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prices": {"g6e.2xlarge": {"on-demand": 1.0}}}, "under instanceTypes"),
        ({"prices": {"g6e.xlarge": {"spot": 1.0}}}, "spot is not among the pool's capacity"),
        ({"prices": {"g6e.xlarge": {"on-demand": -1.0}}}, "greater than or equal to 0"),
        ({"prices": {"g6e.xlarge": {"reserve": 1.0}}}, "'reserved'"),
    ],
)
def test_a_price_that_would_never_be_used_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        lab(**changes)


def test_idle_accelerators_cost_their_share_of_the_node() -> None:
    half = planned(
        an_environment(pools={"p5": LARGE}),
        model="hf://Qwen/Qwen3-32B",
        accelerator="h100:4",
        availability="single",
        replicas=1,
    )

    assert half.cost.idle_accelerators == 4
    assert half.cost.stranded == pytest.approx(P5_48XLARGE / 2)
    assert half.cost.usd_per_replica == pytest.approx(P5_48XLARGE)


def two_halves(**changes: Any) -> Plan:
    models = [
        a_model(name=name, model="hf://Qwen/Qwen3-32B", accelerator="h100:4", replicas=1, **changes)
        for name in ("one", "other")
    ]
    return a_plan(*models, environment=an_environment(pools={"p5": LARGE}))


def test_models_that_share_a_node_strand_nothing() -> None:
    plan = two_halves(availability="single")
    [pool] = plan.pools

    assert (pool.nodes, pool.accelerators, pool.idle_accelerators) == (1, 8, 0)
    assert plan.stranded == 0
    assert plan.floor == pytest.approx(P5_48XLARGE)
    assert plan.ceiling == pytest.approx(2 * P5_48XLARGE), "at worst each has a node of its own"


def test_the_environment_adds_up_its_pools() -> None:
    pools = {"p5": LARGE, "g6e": SMALL}
    large = a_model(name="large", model="hf://Qwen/Qwen3-32B", accelerator="h100:4", replicas=1)
    small = a_model(name="small")

    plan = a_plan(large, small, environment=an_environment(pools=pools))

    assert plan.floor == pytest.approx(P5_48XLARGE + 2 * G6E_XLARGE)
    assert plan.stranded == pytest.approx(P5_48XLARGE / 2)
    [on_demand] = plan.by_capacity
    assert on_demand.floor == pytest.approx(plan.floor)


def test_nothing_runs_and_nothing_costs_at_zero_replicas() -> None:
    plan = planned(lab(), replicas={"min": 0, "max": 2})

    assert (plan.cost.floor, plan.cost.stranded) == (0, 0)
    assert plan.cost.usd_per_replica == pytest.approx(G6E_XLARGE), "a token costs what one replica costs"


@given(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=40))
def test_powers_of_two_pack_without_waste(sizes: list[int]) -> None:
    assert packed_nodes(sizes, 8) == -(-sum(sizes) // 8)


@given(st.lists(st.integers(1, 8), max_size=40))
def test_every_replica_has_a_node(sizes: list[int]) -> None:
    assert -(-sum(sizes) // 8) <= packed_nodes(sizes, 8) <= len(sizes)


def needs(*models: Any, **environment: Any) -> dict[str, tuple[int, int]]:
    """Needed and reserved vCPU by quota code."""
    plan = a_plan(*models, environment=an_environment(**environment))
    return {need.code: (need.needed_vcpu, need.reserved_vcpu) for need in plan.quotas}


def test_models_of_a_pool_are_added_up_with_a_surge_each() -> None:
    models = [a_model(name="one"), a_model(name="other", replicas={"min": 2, "max": 3})]

    assert needs(*models, pools={"gpu": SMALL}) == {"L-DB2E81BA": ((2 + 1 + 3 + 1) * 4, 0)}


def test_every_class_of_instances_has_its_own_quota() -> None:
    small = a_model(name="small", pool="gpu")
    large = a_model(
        name="large", model="hf://Qwen/Qwen3-32B", accelerator="h100:8", rollout={"strategy": "in-place"}
    )
    chip = a_model(
        name="chip",
        model="hf://Qwen/Qwen3-8B",
        accelerator="trn2",
        replicas=1,
        rollout={"strategy": "in-place"},
    )
    pools = {
        "gpu": SMALL | {"capacity": ["spot"]},
        "p5": LARGE,
        "trn2": {"accelerator": "trn2", "limit": 64, "instanceTypes": ["trn2.48xlarge"]} | RESERVED,
    }

    assert needs(small, large, chip, pools=pools) == {
        "L-3819A6DF": (12, 0),
        "L-417A185B": (384, 0),
        "L-2C3B7624": (192, 192),
    }


def test_a_reservation_counts_as_on_demand_once() -> None:
    both = SMALL | RESERVED | {"capacity": ["reserved", "on-demand"]}

    assert needs(a_model(), pools={"gpu": SMALL | RESERVED}) == {"L-DB2E81BA": (12, 12)}
    assert needs(a_model(), pools={"gpu": both}) == {"L-DB2E81BA": (12, 0)}


def test_a_capacity_block_counts_against_its_own_quota_where_that_is_stated() -> None:
    model = a_model(
        model="hf://Qwen/Qwen3-32B", accelerator="h100:8", replicas=1, rollout={"strategy": "in-place"}
    )
    blocks = {"pools": {"p5": LARGE | RESERVED}, "quotas": {"L-DA6814F2": 192, "L-417A185B": 0}}

    assert needs(model, pools=blocks["pools"]) == {"L-417A185B": (192, 192)}
    assert needs(model, **blocks) == {"L-DA6814F2": (192, 192)}


def test_the_commands_name_capacity_stranded_cost_and_the_price_of_tokens(modelyard: Modelyard) -> None:
    plan = modelyard("plan", "--env", "prod").out
    explanation = modelyard("explain", "llama-3-3-70b", "--env", "prod").out

    assert "Stranded: $" in plan
    for words in ("- on-demand", "stranded", "estimate, roofline bound", "per 1M output tokens"):
        assert words in explanation


def test_the_numbers_are_all_in_the_data(modelyard: Modelyard) -> None:
    plan = json.loads(modelyard("plan", "--env", "prod", "-o", "json").out)
    explanation = json.loads(modelyard("explain", "llama-3-1-8b", "--env", "prod", "-o", "json").out)

    assert plan["cost"]["strandedUsdPerHour"] > 0
    assert {pool["pool"] for pool in plan["cost"]["pools"]} == {"g6e", "p5", "trn2"}
    assert plan["cost"]["byCapacity"]["reserved"]["committed"]
    model = explanation["model"]
    assert model["cost"]["byCapacity"]["on-demand"]["floorUsdPerHour"] == model["cost"]["floorUsdPerHour"]
    assert model["throughput"]["isUpperBound"] == (model["throughput"]["source"] == "roofline")
    for number in ("outputTokensPerSecond", "usdPerMillionOutputTokens", "usdPerMillionTokens"):
        assert model["throughput"][number] > 0


def asked(**on_demand: float) -> Prices:
    """Prices of the region with those by instance type, `_` for the dot, asked of AWS today."""
    by_type = {name.replace("_", "."): price for name, price in on_demand.items()}
    return Prices(REGION, RegionPrices(REGION, "2026-11-22", {}, by_type, {}))


def test_plans_are_made_with_the_prices_that_they_are_given_whatever_was_planned_before() -> None:
    """Placements are remembered by what decides them, prices among it."""
    environment = lab(instanceTypes=["g6e.xlarge", "g6e.2xlarge"])
    books = [None, asked(g6e_xlarge=9.0, g6e_2xlarge=0.5), None, asked(g6e_xlarge=0.25), Prices(REGION)]

    plans = [a_plan(a_model(), environment=environment, prices=book) for book in books]

    shipped, dear, again, cheap, same = [made.models[0] for made in plans]
    assert [made.placement.cheapest.name for made in (shipped, dear, cheap)] == [
        "g6e.xlarge",
        "g6e.2xlarge",
        "g6e.xlarge",
    ]
    assert (dear.cost.floor, cheap.cost.floor) == (1.0, 0.5)
    assert shipped == again == same
    assert plans[1].prices == books[1]


def test_an_asked_price_makes_a_type_launchable_in_that_plan_alone() -> None:
    pool = {"accelerator": "h200", "instanceTypes": ["p5e.48xlarge"], "limit": 8}
    environment = an_environment(region="us-east-2", pools={"p5e": pool})
    model = a_model(accelerator="h200")

    priceless = a_plan(model, environment=environment)
    priced = a_plan(model, environment=environment, prices=asked(p5e_48xlarge=60.0))

    assert priceless.models == ()
    assert [made.placement.cheapest.name for made in priced.models] == ["p5e.48xlarge"]


def test_prices_of_another_region_are_no_prices_of_the_environment() -> None:
    with pytest.raises(ValueError, match="prices of us-east-1 for an environment in us-east-2"):
        a_plan(a_model(), prices=Prices("us-east-1"))
