"""Prices of the AWS services around the models, dated, by region: control plane, network, storage, keys.

They are not asked of AWS: `modelyard catalog refresh` asks for instances that serve models, whose prices
decide where a model runs. These decide nothing; they are there to be known before a deploy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from modelyard.hardware.tables import yaml_table


@dataclass(frozen=True)
class ServicePrices:
    """US dollars in one region. `prices`: by name, for the unit in the name (hour, month, GB). `instances`:
    an hour, on demand. Both are empty for a region that the table does not know. `pages`: AWS' page of each
    price, for every region. `day`: when the table was read."""

    region: str
    day: str
    prices: Mapping[str, float]
    instances: Mapping[str, float]
    pages: Mapping[str, str]


@cache
def service_prices(region: str) -> ServicePrices:
    """The prices in `region`."""
    table = yaml_table("service_prices.yaml")
    known = region in table["regions"]
    rows = {name: row["usd"] for name, row in table["prices"].items()}
    found = {
        name: float(usd[region] if isinstance(usd, dict) else usd)
        for name, usd in rows.items()
        if (region in usd if isinstance(usd, dict) else known)
    }
    return ServicePrices(
        region=region,
        day=str(table["date"]),
        prices=MappingProxyType(found),
        instances=MappingProxyType(
            {name: float(usd[region]) for name, usd in table["instances"].items() if region in usd}
        ),
        pages=MappingProxyType({name: str(row["page"]) for name, row in table["prices"].items()}),
    )
