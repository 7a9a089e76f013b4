"""Zones of a region that offer an instance type. AWS publishes zones by ID; zone names differ between
accounts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from modelyard.hardware.instance_types import InstanceType
from modelyard.hardware.tables import json_table


@cache
def region_zones(region: str) -> tuple[str, ...]:
    """Zone IDs of `region`, such as use2-az1; empty if the region is not in the table."""
    return tuple(_regions().get(region, {}).get("zones", ()))


def offering_zones(instance: InstanceType, region: str) -> tuple[str, ...]:
    """Zone IDs of `region` that offer `instance`."""
    if region not in instance.offered_regions:
        return ()
    return _partly(region).get(instance.name, region_zones(region))


def surely_offered(instance: InstanceType, region: str, zones: int) -> bool:
    """Whether every choice of `zones` zones of the region includes one that offers `instance`.

    Zone names map to different IDs in each account. So a pool in two of three zones certainly gets a type
    that two zones offer, but not a type that a single zone offers.
    """
    known = len(region_zones(region))
    return not known or len(offering_zones(instance, region)) + zones > known


def _regions() -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    regions: Mapping[str, Mapping[str, Mapping[str, list[str]]]] = json_table("zones.json")["regions"]
    return regions


@cache
def _partly(region: str) -> Mapping[str, tuple[str, ...]]:
    """Types that only some zones of the region offer, with those zones."""
    partly = _regions().get(region, {}).get("partly", {})
    return MappingProxyType({name: tuple(zones.split()) for zones, names in partly.items() for name in names})
