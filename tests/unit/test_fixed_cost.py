"""What an environment costs besides its models: what is counted, at which price, and what is left out."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from modelyard.hardware.service_prices import service_prices
from modelyard.hardware.tables import json_table, yaml_table
from modelyard.memory.weights import checkpoint_size
from modelyard.planning import Plan
from modelyard.planning.fixed_cost import EnvironmentCost, environment_cost
from tests.unit.given import Modelyard, a_model, a_plan, an_environment

TODAY = date(2026, 11, 22)


def cost_of(planned: Plan | None = None, *, today: date = TODAY, **settings: Any) -> EnvironmentCost:
    return environment_cost(planned or a_plan(environment=an_environment(**settings)), today)


def usd(cost: EnvironmentCost) -> dict[str, float | None]:
    return {line.name: line.usd_per_month for line in cost.lines}


def test_each_line_is_count_times_price_times_the_hours_of_a_month() -> None:
    lines = usd(cost_of())

    assert lines["EKS control plane"] == pytest.approx(0.10 * 730)
    assert lines["interface endpoints"] == pytest.approx(12 * 2 * 0.01 * 730)
    assert lines["NAT gateways"] == pytest.approx(0.045 * 730)
    assert lines["system nodes"] == pytest.approx(2 * 0.0816 * 730)
    assert lines["disks of system nodes, GiB"] == pytest.approx(2 * 50 * 0.08)
    cost = cost_of()
    assert cost.usd_per_month == pytest.approx(sum(amount or 0 for amount in usd(cost).values()))


def test_weights_that_two_models_share_are_on_efs_once_and_streamed_ones_never() -> None:
    one, twin = a_model(), a_model(name="twin")
    streamed = a_model(name="streamed", model="s3://weights/Qwen3-32B-FP8", cache={"strategy": "s3-stream"})
    planned = a_plan(one, twin, streamed)
    size = checkpoint_size(planned.models[0].serving.arch).in_gib

    (efs,) = [line for line in cost_of(planned).lines if line.name == "EFS, GiB"]

    assert efs.count == pytest.approx(size, abs=0.1)
    assert efs.usd_per_month == pytest.approx(efs.count * 0.30)


def test_lustre_costs_its_whole_size_whatever_lies_in_it() -> None:
    cache = {"fileSystem": "lustre", "sizeGib": 2000, "lustreMbPerSecondPerTib": 500}

    assert usd(cost_of(cache=cache))["FSx for Lustre, GiB"] == pytest.approx(2400 * 0.34)


def test_a_file_system_of_your_own_is_not_counted() -> None:
    cache = {"fileSystemId": "fs-0a1b2c3d4e5f60718", "accessPointId": "fsap-0a1b2c3d4e5f60718"}

    assert "EFS, GiB" not in usd(cost_of(cache=cache))


@pytest.mark.parametrize(
    ("support", "today", "charged"),
    [
        ("extended", date(2027, 3, 26), False),
        ("extended", date(2027, 3, 27), True),
        ("standard", date(2027, 3, 27), False),
    ],
)
def test_extended_support_is_charged_from_the_day_on_which_standard_support_ends(
    support: str, today: date, charged: bool
) -> None:
    lines = usd(cost_of(cluster={"version": "1.35", "supportType": support}, today=today))

    assert ("EKS extended support" in lines) is charged
    assert sum(lines[name] or 0 for name in lines if name.startswith("EKS")) == pytest.approx(
        730 * (0.60 if charged else 0.10)
    )


def test_a_public_gateway_has_a_load_balancer_and_an_address_in_each_zone() -> None:
    gateway = {"domain": "llm.example.com", "certificate": "tls", "cidrs": ["203.0.113.0/24"]}
    secrets = {"tls": "lab/tls"}

    without, with_one = cost_of(), cost_of(gateways={"public": gateway}, secrets=secrets)

    counts = {line.name: line.count for line in with_one.lines}
    before = {line.name: line.count for line in without.lines}
    assert counts["load balancers"] == 1
    assert counts["public IPv4 addresses"] == before["public IPv4 addresses"] + 2


def test_a_gateway_class_of_your_own_makes_no_load_balancer_of_ours() -> None:
    gateway = {"domain": "llm.example.com", "certificate": "tls", "className": "cilium"}

    assert "load balancers" not in usd(cost_of(gateways={"internal": gateway}, secrets={"tls": "lab/tls"}))


def test_other_endpoints_save_what_they_leave_out() -> None:
    savings = {saving.endpoints: saving.usd_per_month for saving in cost_of().savings}

    for choice, saved in savings.items():
        there = usd(cost_of(network={"endpoints": choice})).get("interface endpoints") or 0
        assert (usd(cost_of())["interface endpoints"] or 0) - there == pytest.approx(saved)
    assert not cost_of(network={"endpoints": "none"}).savings


def test_a_price_that_nobody_verified_is_left_out_and_named() -> None:
    cost = cost_of(cluster={"controlPlaneTier": "tier-xl", "systemNodes": {"instanceTypes": ["x2gd.large"]}})

    assert set(cost.unpriced) == {"EKS control plane tier", "system nodes"}
    assert cost.usd_per_month > 0


def test_a_region_that_the_table_lacks_has_counts_and_no_prices() -> None:
    zones = ["ca-central-1a", "ca-central-1b"]
    cost = cost_of(region="ca-central-1", availabilityZones=zones, pools={})

    assert not cost.known
    assert cost.usd_per_month == 0
    assert {line.name: line.count for line in cost.lines}["interface endpoints"] == 24
    assert not cost.savings


def test_every_price_has_its_page_its_date_and_no_region_twice_over() -> None:
    table = yaml_table("service_prices.yaml")
    for name, row in table["prices"].items():
        assert row["page"].startswith("https://aws.amazon.com/"), name
        assert row["published"] <= date.fromisoformat(table["date"]), name
        assert row["source"], name
        if isinstance(row["usd"], dict):
            assert set(row["usd"]) == set(table["regions"]), name
            assert len(set(row["usd"].values())) > 1, f"{name}: one number does"


def test_an_instance_that_both_tables_have_costs_the_same_in_them() -> None:
    models = json_table("instance_types.json")["instanceTypes"]
    shared = set(models) & set(yaml_table("service_prices.yaml")["instances"])

    assert shared
    for name in shared:
        for region, price in models[name]["onDemandUsdPerHour"].items():
            ours = service_prices(region).instances[name]
            assert ours == pytest.approx(price, rel=0.01), f"{name} in {region}"


def test_the_plan_has_one_line_of_it_and_costs_every_line(modelyard: Modelyard) -> None:
    plan, costs = modelyard("plan", "--env", "dev"), modelyard("plan", "--env", "dev", "--costs")

    (line,) = [line for line in plan.out.splitlines() if line.startswith("Besides the models: $")]
    assert "`modelyard plan --env dev --costs` has every line" in line
    assert line.split()[3] in costs.out.splitlines()[0]
    for part in (
        "interface endpoints",
        "NAT gateways",
        "network.endpoints: essential saves $",
        "Depends on use",
    ):
        assert part in costs.out
    assert max(len(line) for line in costs.out.splitlines()) <= 120


def test_the_json_of_a_plan_has_every_line_and_their_sum(modelyard: Modelyard) -> None:
    found = json.loads(modelyard("plan", "--env", "dev", "--output", "json").out)["cost"]["environment"]

    assert sum(line["usdPerMonth"] for line in found["lines"]) == pytest.approx(found["usdPerMonth"], abs=0.1)
    assert found["region"] == "us-east-2"
    assert {"name", "unit", "usd"} == set(found["dependsOnUse"][0])
