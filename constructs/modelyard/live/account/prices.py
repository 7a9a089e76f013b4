"""Current AWS prices of the catalogue's instance types: on demand from the price list, and spot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any

from modelyard.hardware import instance_types
from modelyard.hardware.prices import RegionPrices
from modelyard.live.api.answers import Unanswered
from modelyard.live.api.aws import Account, Operation
from modelyard.reading import parse_json, short

PRODUCTS = Operation("pricing", "GetProducts")
SPOT_PRICES = Operation("ec2", "DescribeSpotPriceHistory")

_LIKE_KARPENTERS_NODES = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "tenancy": "Shared",
    "capacitystatus": "Used",
}
"""The price list has a product per operating system, licence, tenancy and reservation of a type."""


class NoPrices(Exception):
    """AWS returned no usable prices; the text says why."""


def ask_prices(
    account: Account, now: datetime, told: Callable[[str], None] = lambda name: None
) -> tuple[RegionPrices, str]:
    """Prices of the account's region, and the reason if spot prices are missing, else empty.

    `told` is called before each instance type.

    Raises:
        NoPrices: the price list could not be read, or has none of the types.
    """
    region = account.region
    types = [t.name for t in instance_types().values() if region in t.offered_regions]
    if not types:
        raise NoPrices(f"the catalogue has no instance type in {region}")
    on_demand: dict[str, float] = {}
    try:
        for name in types:
            told(name)
            if (price := _on_demand(account, name)) is not None:
                on_demand[name] = price
    except Unanswered as why:
        raise NoPrices(f"the price list was not read: {why}") from None
    if not on_demand:
        raise NoPrices(f"the price list has none of the catalogue's types in {region}")
    spot: dict[str, dict[str, float]] = {}
    missing = ""
    try:
        spot = _spot(account, types, now)
    except Unanswered as why:
        missing = str(why)
    sources = {"onDemand": "AWS Price List Query API, GetProducts of AmazonEC2"}
    if not missing:
        sources["spot"] = f"EC2 DescribeSpotPriceHistory, the price of each zone at {now:%Y-%m-%d %H:%M} UTC"
    frozen = {name: MappingProxyType(zones) for name, zones in spot.items()}
    return RegionPrices(region, now.date().isoformat(), sources, on_demand, frozen), missing


def _on_demand(account: Account, name: str) -> float | None:
    """The on-demand price of the type; None if AWS publishes none, or more than one."""
    filters = {**_LIKE_KARPENTERS_NODES, "instanceType": name, "regionCode": account.region}
    answer = account.ask(
        PRODUCTS,
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in filters.items()],
    )
    try:
        prices = {price for text in answer["PriceList"] for price in _offers(parse_json(text))}
    except (AttributeError, LookupError, TypeError, ValueError) as why:
        raise NoPrices(f"the price list of {name} is not as AWS documents it: {short(str(why))}") from None
    return prices.pop() if len(prices) == 1 else None


def _offers(product: dict[str, Any]) -> set[float]:
    """Hourly on-demand prices of one product. Capacity Blocks are products too, with a different market
    option."""
    market = product.get("product", {}).get("attributes", {}).get("marketoption", "OnDemand")
    if market != "OnDemand":
        return set()
    dimensions = [
        dimension
        for offer in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in offer.get("priceDimensions", {}).values()
        if dimension.get("unit") == "Hrs"
    ]
    amounts = {float(each["pricePerUnit"]["USD"]) for each in dimensions if "USD" in each["pricePerUnit"]}
    return {amount for amount in amounts if amount > 0}


def _spot(account: Account, types: list[str], now: datetime) -> dict[str, dict[str, float]]:
    """By type and zone: a spot history that starts now returns the current prices."""
    answer = account.ask(SPOT_PRICES, InstanceTypes=types, ProductDescriptions=["Linux/UNIX"], StartTime=now)
    latest: dict[tuple[str, str], tuple[datetime, float]] = {}
    for row in answer["SpotPriceHistory"]:
        place = row["InstanceType"], row["AvailabilityZone"]
        seen = row["Timestamp"], float(row["SpotPrice"])
        latest[place] = max(seen, latest.get(place, seen))
    spot: dict[str, dict[str, float]] = {}
    for (name, zone), (_, price) in latest.items():
        if price > 0:
            spot.setdefault(name, {})[zone] = price
    return spot
