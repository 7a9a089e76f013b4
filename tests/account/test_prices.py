"""`modelyard catalog refresh` queries AWS for prices; every command then plans with them and states their
date."""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from modelyard.cli import prices
from modelyard.cli.main import main
from modelyard.hardware import instance_types
from modelyard.hardware.prices import Prices, RegionPrices, prices_path, read_prices
from modelyard.project import region_prices
from tests.account.conftest import REGION, Project
from tests.account.fake_account import Error, FakeAccount, denied
from tests.unit.interruption import HOWS, How, moments, stopped

P5 = {"accelerator": "h100", "instanceTypes": ["p5.48xlarge"], "limit": 16}
NOW = datetime.now(UTC)
TODAY = f"{NOW:%Y-%m-%d}"


@pytest.fixture(autouse=True)
def _the_clock_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file says at which minute it was asked for: two of the same prices must not differ by it."""

    class Standing(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Standing:
            return cls.fromtimestamp(NOW.timestamp(), tz)

    monkeypatch.setattr(prices, "datetime", Standing)


def asked(project: Project) -> RegionPrices:
    """What a refresh wrote."""
    text = prices_path(project.folder / "environments", REGION).read_text(encoding="utf-8")
    return read_prices(text, REGION)


def product(price: str, **attributes: str) -> str:
    """One product as the price list has it: JSON in JSON."""
    dimension = {
        "unit": "Hrs",
        "pricePerUnit": {"USD": price},
        "description": "per On Demand Linux Instance Hour",
    }
    return json.dumps(
        {
            "product": {"attributes": attributes},
            "terms": {
                "OnDemand": {"SKU.OFFER": {"priceDimensions": {"SKU.OFFER.RATE": dimension}}},
                "Reserved": {
                    "SKU.R": {"priceDimensions": {"x": {"unit": "Hrs", "pricePerUnit": {"USD": "1.0"}}}}
                },
            },
        }
    )


def offers(fake: FakeAccount, **prices: list[str]) -> None:
    """The price list, by instance type with `_` for the dot; other types have no product."""
    by_type = {name.replace("_", "."): products for name, products in prices.items()}

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        wanted = {each["Field"]: each["Value"] for each in asked["Filters"]}
        assert wanted["regionCode"] == REGION
        return {"FormatVersion": "aws_v1", "PriceList": by_type.get(wanted["instanceType"], [])}

    fake.answers["pricing:GetProducts"] = answer


def history(*rows: tuple[str, str, str, int]) -> dict[str, Any]:
    """Spot prices as (type, zone, price, hours ago)."""
    now = datetime.now(UTC)
    return {
        "SpotPriceHistory": [
            {
                "InstanceType": name,
                "AvailabilityZone": f"{REGION}{zone}",
                "SpotPrice": price,
                "Timestamp": now - timedelta(hours=hours),
                "ProductDescription": "Linux/UNIX",
            }
            for name, zone, price, hours in rows
        ]
    }


@pytest.fixture(autouse=True)
def _market(fake: FakeAccount) -> None:
    offers(fake, p5_48xlarge=[product("50.5000000000")])
    fake.answers["ec2:DescribeSpotPriceHistory"] = history(
        ("p5.48xlarge", "a", "21.5", 1), ("p5.48xlarge", "a", "30.0", 9), ("p5.48xlarge", "c", "19.25", 2)
    )


def plan(project: Project) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(project.run("plan", "--env", "lab", "--output", "json").out)
    return document


def test_the_plan_costs_what_was_asked_and_says_of_what_day(project: Project) -> None:
    before = plan(project)

    answer = project.run("catalog", "refresh", "--env", "lab")
    after = plan(project)

    assert answer.code == 0, answer.err
    assert before["cost"]["floorUsdPerHour"] == 68.8
    assert after["cost"]["floorUsdPerHour"] == 50.5
    assert before["cost"]["prices"]["source"] == "shipped"
    assert after["cost"]["prices"] == {"date": TODAY, "source": "refreshed", "spot": True}
    assert "p5.48xlarge: $68.80 -> $50.50" in answer.out
    assert f"On demand: prices of {TODAY}, asked of AWS" in project.run("plan", "--env", "lab").out


def test_the_file_is_dated_names_its_sources_and_lies_beside_the_environments(project: Project) -> None:
    project.run("catalog", "refresh", "--region", REGION)

    text = (project.folder / "environments" / "prices" / f"{REGION}.json").read_text(encoding="utf-8")
    document = json.loads(text)

    assert document["_about"]["date"] == TODAY
    assert set(document["_about"]["source"]) == {"onDemand", "spot"}
    assert document["onDemandUsdPerHour"] == {"p5.48xlarge": 50.5}
    assert document["spotUsdPerHour"] == {"p5.48xlarge": {f"{REGION}a": 21.5, f"{REGION}c": 19.25}}
    assert list((project.folder / "environments").glob("**/*.tmp")) == []


def test_the_shipped_table_is_not_touched_and_answers_for_the_rest(project: Project) -> None:
    import modelyard.hardware

    shipped = Path(modelyard.hardware.__file__).parent / "data"
    before = {file: file.read_bytes() for file in shipped.iterdir()}

    project.run("catalog", "refresh", "--region", REGION)

    assert {file: file.read_bytes() for file in shipped.iterdir()} == before
    known = region_prices(project.folder / "environments", REGION)
    assert isinstance(known, Prices)
    assert known.of(instance_types()["p5.48xlarge"]).source == f"price-list {TODAY}"
    assert known.of(instance_types()["g6.xlarge"]).source != f"price-list {TODAY}"
    elsewhere = region_prices(project.folder / "environments", "us-east-1")
    assert isinstance(elsewhere, Prices)
    assert elsewhere.of(instance_types()["p5.48xlarge"]).usd_per_hour == 55.04


@pytest.mark.parametrize(
    ("zones", "floor"), [(None, 19.25), ([f"{REGION}a"], 21.5)], ids=["any zone", "the pool's zone"]
)
def test_spot_costs_its_price_in_the_pools_zones_and_at_most_on_demand(
    project: Project, zones: list[str] | None, floor: float
) -> None:
    project.environment(pools={"p5": {**P5, "capacity": ["spot"], **({"zones": zones} if zones else {})}})
    unknown = plan(project)["cost"]["byCapacity"]["spot"]

    project.run("catalog", "refresh", "--env", "lab")
    known = plan(project)["cost"]["byCapacity"]["spot"]

    assert unknown["floorUsdPerHour"] is None
    assert (known["floorUsdPerHour"], known["ceilingUsdPerHour"]) == (floor, 50.5)
    assert TODAY in known["basis"]


def test_what_an_environment_states_is_above_what_aws_asks(project: Project) -> None:
    project.environment(pools={"p5": {**P5, "prices": {"p5.48xlarge": {"on-demand": 33.0}}}})
    project.run("catalog", "refresh", "--env", "lab")

    assert plan(project)["cost"]["floorUsdPerHour"] == 33.0


def test_the_cheapest_type_is_the_one_of_the_new_prices(project: Project, fake: FakeAccount) -> None:
    """Placements are remembered by what decides them: new prices are a new question."""
    pool = {"accelerator": "l4", "instanceTypes": ["g6.xlarge", "g6.2xlarge"], "limit": 8}
    project.environment(pools={"g6": pool})
    project.model(model="hf://Qwen/Qwen3-8B", accelerator="l4", engine={"maxModelLen": 8192})
    before = plan(project)["models"][0]["instanceTypes"]
    offers(fake, g6_xlarge=[product("9.9")], g6_2xlarge=[product("0.1")])

    project.run("catalog", "refresh", "--env", "lab")
    after = plan(project)["models"][0]["instanceTypes"]

    assert sorted(before) == sorted(after)
    assert after == before[::-1]


class TestThePriceList:
    @pytest.mark.parametrize(
        ("products", "price"),
        [
            ([product("50.5"), product("50.5")], 50.5),
            ([product("50.5"), product("12.0", marketoption="CapacityBlock")], 50.5),
            ([product("50.5", marketoption="OnDemand"), product("0.0000000000")], 50.5),
            ([product("50.5"), product("51.5")], None),
            ([product("0.0000000000")], None),
        ],
        ids=["same", "block", "free", "two prices", "no price"],
    )
    def test_one_hourly_on_demand_price_counts_and_nothing_else(
        self, project: Project, fake: FakeAccount, products: list[str], price: float | None
    ) -> None:
        offers(fake, p5_48xlarge=products, g6_xlarge=[product("1.0")])

        project.run("catalog", "refresh", "--region", REGION)

        assert asked(project).on_demand.get("p5.48xlarge") == price

    def test_it_is_asked_where_it_has_an_endpoint(self, project: Project, fake: FakeAccount) -> None:
        places = []
        made = fake.session

        def session(**settings: Any) -> Any:
            one = made(**settings)
            client = one.client

            def noted(service: str, **options: Any) -> Any:
                places.append((service, options["region_name"]))
                return client(service, **options)

            one.client = noted
            return one

        project.monkeypatch.setattr("boto3.Session", session)
        project.run("catalog", "refresh", "--region", REGION)

        assert places == [("pricing", "us-east-1"), ("ec2", REGION)]


class TestWithoutAnAnswer:
    def test_a_denied_price_list_changes_nothing(self, project: Project, fake: FakeAccount) -> None:
        project.run("catalog", "refresh", "--env", "lab")
        path = project.folder / "environments" / "prices" / f"{REGION}.json"
        before = path.read_bytes()
        fake.answers["pricing:GetProducts"] = denied("pricing:GetProducts")

        answer = project.run("catalog", "refresh", "--env", "lab")

        assert answer.code == 1
        assert "needs pricing:GetProducts; nothing was written" in answer.err
        assert path.read_bytes() == before

    def test_a_price_list_without_the_types_writes_nothing(self, project: Project, fake: FakeAccount) -> None:
        offers(fake)

        assert project.run("catalog", "refresh", "--env", "lab").code == 1
        assert not (project.folder / "environments" / "prices").exists()

    def test_denied_spot_prices_leave_on_demand_ones_and_are_told(
        self, project: Project, fake: FakeAccount
    ) -> None:
        fake.answers["ec2:DescribeSpotPriceHistory"] = denied("ec2:DescribeSpotPriceHistory")

        answer = project.run("catalog", "refresh", "--env", "lab", "--output", "json")

        assert answer.code == 2
        assert "needs ec2:DescribeSpotPriceHistory" in answer.err
        assert (json.loads(answer.out)["onDemand"], json.loads(answer.out)["spot"]) == (1, 0)

    def test_expired_credentials_are_one_line(self, project: Project, fake: FakeAccount) -> None:
        fake.answers["pricing:GetProducts"] = Error("ExpiredTokenException", "expired")

        answer = project.run("catalog", "refresh", "--env", "lab")

        assert answer.code == 1
        assert "ExpiredTokenException: expired" in answer.err
        assert "Traceback" not in answer.err

    def test_refresh_wants_a_region_that_the_catalogue_knows(self, project: Project) -> None:
        assert project.run("catalog", "refresh").code == 64
        assert "'mars-north-1'" in project.run("catalog", "refresh", "--region", "mars-north-1").err


class TestABrokenFile:
    GOOD: dict[str, Any] = {  # noqa: RUF012
        "_about": {"date": "2026-11-21", "region": REGION, "source": {"onDemand": "a"}},
        "onDemandUsdPerHour": {"p5.48xlarge": 50.5},
        "spotUsdPerHour": {},
    }

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "[]",
            "{}",
            json.dumps({**GOOD, "_about": {**GOOD["_about"], "region": "us-east-1"}}),
            json.dumps({**GOOD, "_about": {**GOOD["_about"], "date": "yesterday"}}),
            json.dumps({**GOOD, "onDemandUsdPerHour": {"p5.48xlarge": "50.5"}}),
            json.dumps({**GOOD, "onDemandUsdPerHour": {"p5.48xlarge": -1}}),
            json.dumps({**GOOD, "onDemandUsdPerHour": {"p5.48xlarge": float("inf")}}),
            json.dumps({**GOOD, "spotUsdPerHour": {"p5.48xlarge": 3}}),
        ],
    )
    def test_is_a_finding_with_its_place_and_not_half_believed(self, project: Project, text: str) -> None:
        folder = project.folder / "environments" / "prices"
        folder.mkdir()
        (folder / f"{REGION}.json").write_text(text, encoding="utf-8")

        planned = project.run("plan", "--env", "lab")
        listed = project.run("catalog", "instances", "--env", "lab")

        assert (planned.code, listed.code) == (1, 1)
        for answer in (planned, listed):
            assert f"environments/prices/{REGION}.json:1:1 SPEC003 error" in answer.err
        assert project.run("catalog", "refresh", "--env", "lab").code == 0
        assert project.run("plan", "--env", "lab").code == 0

    def test_the_good_one_is_good(self) -> None:
        assert read_prices(json.dumps(self.GOOD), REGION).on_demand == {"p5.48xlarge": 50.5}


@pytest.mark.parametrize("how", HOWS)
def test_at_twenty_moments_a_refresh_leaves_the_former_prices_or_the_new_ones(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: How
) -> None:
    project.run("catalog", "refresh", "--env", "lab")
    path = project.folder / "environments" / "prices" / f"{REGION}.json"
    new = path.read_bytes()
    former = new.replace(TODAY.encode(), b"2026-01-02")
    assert former != new
    path.write_bytes(former)
    monkeypatch.setattr(sys, "argv", ["modelyard", "catalog", "refresh", "--env", "lab"])
    count = moments(main, path.parent)

    for at in [*range(1, count + 1), *random.Random(7).choices(range(1, count + 1), k=max(0, 20 - count))]:
        path.write_bytes(former)

        stopped(main, path.parent, how=how, at=at)

        assert path.read_bytes() in (former, new)
        assert read_prices(path.read_text(encoding="utf-8"), REGION).region == REGION
