"""Prices of instance types in a region: the shipped table, and newer prices from AWS in a dated file.

`modelyard catalog refresh` writes `environments/prices/REGION.json`, which is committed with the
environments: `accelerator: auto` picks the cheapest, so prices decide what is deployed, and plan, review and
deploy must read the same prices. The shipped table in the package never changes; it fills in what the file
lacks.

The code that opens the environments reads their region's file and passes the prices on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from modelyard.hardware.instance_types import NOT_OFFERED, InstanceType, Price
from modelyard.hardware.tables import json_table
from modelyard.reading import parse_json
from modelyard.secret_values import shown

FOLDER = "prices"
"""Folder beside the environment files."""


@dataclass(frozen=True, eq=False)
class RegionPrices:
    """US dollars per hour in one region, queried on one day: on demand by instance type, spot by type and
    zone."""

    region: str
    asked: str
    sources: Mapping[str, str]
    on_demand: Mapping[str, float]
    spot: Mapping[str, Mapping[str, float]]

    def spot_price(self, instance_type: str, zones: Iterable[str] = ()) -> float | None:
        """The lowest spot price in `zones`, by default in all zones; None if the type has no price there."""
        known = self.spot.get(instance_type, {})
        wanted = set(zones) or set(known)
        return min((price for zone, price in known.items() if zone in wanted), default=None)


@dataclass(frozen=True)
class Prices:
    """The prices of one region: `asked` from AWS, and the shipped table for the rest.

    Prices read at different times are different cache keys, even if they are equal.
    """

    region: str
    asked: RegionPrices | None = None

    def of(self, instance: InstanceType) -> Price:
        """The on-demand price: from AWS if queried, else the shipped one."""
        shipped = instance.shipped_price(self.region)
        if self.asked is None or instance.name not in self.asked.on_demand or shipped.source == NOT_OFFERED:
            return shipped
        return Price(self.asked.on_demand[instance.name], f"price-list {self.asked.asked}")

    def spot(self, instance_type: str, zones: Iterable[str] = ()) -> float | None:
        """The lowest spot price in `zones`, by default in all zones; None if AWS was not queried for it."""
        return self.asked.spot_price(instance_type, zones) if self.asked else None

    @property
    def day(self) -> str:
        """The date of the query, or of the shipped table."""
        return self.asked.asked if self.asked else str(json_table("instance_types.json")["_about"]["date"])


def prices_path(environments: Path, region: str) -> Path:
    """Path of the price file of `region`."""
    return environments / FOLDER / f"{region}.json"


def read_prices(text: str, region: str) -> RegionPrices:
    """Parse the output of `prices_json`.

    Raises:
        ValueError: not a price file for `region`.
    """
    document = parse_json(text)
    try:
        about = document["_about"]
        prices = RegionPrices(
            region=str(about["region"]),
            asked=date.fromisoformat(about["date"]).isoformat(),
            sources=MappingProxyType({str(k): str(v) for k, v in about["source"].items()}),
            on_demand=MappingProxyType(_amounts(document["onDemandUsdPerHour"])),
            spot=MappingProxyType({t: _amounts(zones) for t, zones in document["spotUsdPerHour"].items()}),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {shown(str(error))}") from error
    if prices.region != region:
        raise ValueError(f"these are prices of {shown(prices.region)}, not {region}")
    return prices


def prices_json(prices: RegionPrices) -> str:
    """The file content: sorted, one line per type, so that a refresh gives a readable diff."""
    document = {
        "_about": {
            "date": prices.asked,
            "region": prices.region,
            "what": "US dollars an hour, Linux, shared tenancy; written by `modelyard catalog refresh`",
            "source": dict(prices.sources),
        },
        "onDemandUsdPerHour": dict(sorted(prices.on_demand.items())),
        "spotUsdPerHour": {name: dict(sorted(zones.items())) for name, zones in sorted(prices.spot.items())},
    }
    return json.dumps(document, indent=1) + "\n"


def _amounts(table: Mapping[str, Any]) -> dict[str, float]:
    amounts = {}
    for name, amount in table.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
            raise ValueError(f"{shown(name)}: {shown(amount)} is no price")
        amounts[name] = float(amount)
    return amounts
