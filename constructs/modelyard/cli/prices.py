"""Prices of a region: their source and date, and `modelyard catalog refresh`, which queries AWS for current
prices."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelyard.cli.connections import opened
from modelyard.cli.printing import console, count, dollars, print_json
from modelyard.cli.workspace import CommandError, Output
from modelyard.hardware import instance_types
from modelyard.hardware.prices import Prices, RegionPrices, prices_json, prices_path
from modelyard.live.account.prices import NoPrices, ask_prices
from modelyard.writing import write_file

_SHOWN = 12


def price_date(prices: Prices) -> str:
    """The date of the prices, in a few words."""
    if prices.asked is None:
        return f"prices shipped with Modelyard, of {prices.day}"
    return f"prices of {prices.day}, asked of AWS"


def prices_origin(prices: Prices) -> dict[str, Any]:
    """The same as data."""
    return {
        "date": prices.day,
        "source": "refreshed" if prices.asked else "shipped",
        "spot": bool(prices.asked and prices.asked.spot),
    }


def refresh(environments: Path, known: Prices, profile: str | None, output: Output) -> int:
    """Query AWS, write `prices/REGION.json`, and print the differences from `known`."""
    region = known.region
    if not any(region in instance.offered_regions for instance in instance_types().values()):
        raise CommandError(f"the catalogue has no instance type in '{region}'")
    if not environments.is_dir():
        raise CommandError(f"{environments} is no folder; prices lie beside the environments")
    before = _on_demand(known)
    account = opened(region, profile, "catalog refresh")
    progress = console(stderr=True)
    with progress.status(f"asking for prices in {region}") as status:
        try:
            found, no_spot = ask_prices(
                account,
                datetime.now(UTC),
                lambda name: status.update(f"asking for prices in {region}: {name}"),
            )
        except NoPrices as why:
            raise CommandError(f"{why}; nothing was written") from None
    path = prices_path(environments, region)
    write_file(path, prices_json(found))
    changed = {
        name: (before.get(name), price)
        for name, price in found.on_demand.items()
        if before.get(name) != price
    }
    if output is Output.json:
        _print_json(path, found, changed)
    else:
        _print(path, found, changed)
    if no_spot:
        progress.print(f"spot prices were not asked: {no_spot}", soft_wrap=True)
    return 2 if no_spot else 0


def _on_demand(prices: Prices) -> dict[str, float]:
    priced = {name: prices.of(instance).usd_per_hour for name, instance in instance_types().items()}
    return {name: price for name, price in priced.items() if price is not None}


def _print_json(path: Path, found: RegionPrices, changed: dict[str, tuple[float | None, float]]) -> None:
    print_json(
        "Prices",
        region=found.region,
        date=found.asked,
        file=str(path),
        onDemand=len(found.on_demand),
        spot=len(found.spot),
        changed=[
            {"instanceType": name, "beforeUsdPerHour": old, "usdPerHour": new}
            for name, (old, new) in sorted(changed.items())
        ],
    )


def _print(path: Path, found: RegionPrices, changed: dict[str, tuple[float | None, float]]) -> None:
    out = console()
    offered = sum(found.region in instance.offered_regions for instance in instance_types().values())
    zones = {zone for zones in found.spot.values() for zone in zones}
    out.print(
        f"{found.region}, {found.asked}: on demand {len(found.on_demand)} of {count(offered, 'instance type')}, "
        f"spot {count(len(found.spot), 'type')} in {count(len(zones), 'zone')}",
        soft_wrap=True,
    )
    for name, (old, new) in sorted(changed.items())[:_SHOWN]:
        out.print(f"  {name}: {dollars(old)} -> {dollars(new)}", soft_wrap=True)
    if len(changed) > _SHOWN:
        out.print(f"  and {len(changed) - _SHOWN} more")
    if not changed:
        out.print("  no on-demand price differs from those before")
    out.print(f"written: {path}; commit it, so that plans and deploys read the same prices", soft_wrap=True)
