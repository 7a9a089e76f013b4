"""Which zones of a region offer an instance type. AWS counts zones by id; names differ from account to
account."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from modelyard.hardware.instance_types import InstanceType
from modelyard.hardware.tables import json_table


@cache
def region_zones(region: str) -> tuple[str, ...]:
    """Zone ids of `region`, such as use2-az1; empty where the table does not know the region."""
    return tuple(_regions().get(region, {}).get("zones", ()))


def offering_zones(instance: InstanceType, region: str) -> tuple[str, ...]:
    """Zone ids of `region` that offer `instance`."""
    if region not in instance.offered_regions:
        return ()
    return _partly(region).get(instance.name, region_zones(region))


def surely_offered(instance: InstanceType, region: str, zones: int) -> bool:
    """Whether any choice of `zones` of the region's zones holds one that offers `instance`.

    A zone's name says nothing of its id, so a pool that names two of three zones is sure of a type that two
    of them offer, and not of one that a single zone offers.
    """
    known = len(region_zones(region))
    return not known or len(offering_zones(instance, region)) + zones > known


def _regions() -> Mapping[str, Mapping[str, Mapping[str, list[str]]]]:
    regions: Mapping[str, Mapping[str, Mapping[str, list[str]]]] = json_table("zones.json")["regions"]
    return regions


@cache
def _partly(region: str) -> Mapping[str, tuple[str, ...]]:
    """Types that only some zones of the region offer, with these zones."""
    partly = _regions().get(region, {}).get("partly", {})
    return MappingProxyType({name: tuple(zones.split()) for zones, names in partly.items() for name in names})
