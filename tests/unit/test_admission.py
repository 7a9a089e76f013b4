"""What keeps a pod off an instance type, and which type comes nearest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.hardware import Memory, Prices, accelerators, instance_types, types_with
from modelyard.hardware.zones import offering_zones, region_zones, surely_offered
from modelyard.memory.serving import Serving
from modelyard.planning.admission import PodRequest
from modelyard.planning.placement import Placement, nearest_miss, place, pod_request
from tests.unit.given import REGION, a_model, a_plan, an_environment, served

RESERVED = {"capacity": ["reserved"], "reservations": ["cr-0123456789abcdef0"]}


def a_request(**changes: Any) -> PodRequest:
    serving = served(a_model())
    assert isinstance(serving, Serving)
    return replace(pod_request(serving), **changes)


def in_pool(accelerator: str, pool: dict[str, Any] | None = None, **request: Any) -> Placement:
    pools = {"only": {"accelerator": accelerator, "limit": 64} | (pool or {})}
    return place(a_request(**request), "only", an_environment(pools=pools), Prices(REGION))


def nearest(placement: Placement) -> tuple[str, str]:
    miss = nearest_miss([placement])
    assert miss is not None
    return miss.instance_type, miss.reason


def test_one_pod_on_one_node_asks_for_no_efa() -> None:
    for count in (1, 4, 8):
        serving = served(a_model(accelerator=f"l40s:{count}"))
        assert isinstance(serving, Serving)
        request = pod_request(serving)
        assert request.efa_interfaces == 0


def test_efa_interfaces_are_a_matter_of_the_node() -> None:
    """Only the larger L40S types have EFA: four interfaces on the largest."""
    four = in_pool("l40s", accelerators=8, efa_interfaces=4)

    assert [t.name for t in four.instance_types] == ["g6e.48xlarge"]
    assert nearest(in_pool("l40s", accelerators=8, efa_interfaces=8)) == (
        "g6e.48xlarge",
        "has 4 of 8 EFA interfaces",
    )


@pytest.mark.parametrize(
    ("accelerator", "pool", "reason"),
    [
        ("h200", {"instanceTypes": ["p5e.48xlarge"]}, "has no public price"),
        ("h100", {"limit": 4, "instanceTypes": ["p5.48xlarge"]}, "which the pool's limit of 4 never allows"),
        ("l40s", {"instanceTypes": ["g6e.xlarge", "p5.4xlarge"]}, ""),
    ],
)
def test_what_karpenter_never_launches_admits_nothing(
    accelerator: str, pool: dict[str, Any], reason: str
) -> None:
    placement = in_pool(accelerator, pool)

    if reason:
        assert placement.instance_types == ()
        assert reason in nearest(placement)[1]
    else:
        assert [t.name for t in placement.instance_types] == ["g6e.xlarge"]


def test_a_type_without_a_price_is_launched_from_a_reservation() -> None:
    assert in_pool("h200", {"instanceTypes": ["p5e.48xlarge"]} | RESERVED).instance_types


def test_neuron_devices_are_handed_out_one_by_one_or_all_together() -> None:
    """A part of more than one needs neighbours, which the device plugin alone does not look for."""
    admits = {n: bool(in_pool("trn2", RESERVED, accelerators=n).instance_types) for n in (1, 2, 8, 16)}

    assert admits == {1: True, 2: False, 8: False, 16: True}


@pytest.mark.parametrize(
    ("request_", "pool", "expected"),
    [
        ({"accelerators": 16}, {}, ("g6e.48xlarge", "has 8 of 16 GPUs")),
        (
            {"memory": Memory.gib(60)},
            {"instanceTypes": ["g6e.xlarge", "g6e.2xlarge"]},
            ("g6e.2xlarge", "has 57.4 GiB of memory free of DaemonSets, 60.0 GiB needed"),
        ),
        (
            {"accelerators": 2},
            {"instanceTypes": ["g6e.xlarge", "p5.48xlarge"]},
            ("g6e.xlarge", "has 1 of 2 GPUs"),
        ),
        (
            {"accelerators": 4, "cpu_milli": 6000},
            {"instanceTypes": ["g6e.xlarge", "g6e.2xlarge"]},
            ("g6e.2xlarge", "has 1 of 4 GPUs"),
        ),
    ],
)
def test_the_nearest_miss_lacks_the_least(
    request_: dict[str, Any], pool: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert nearest(in_pool("l40s", pool, **request_)) == expected


def test_a_refusal_names_everything_that_a_type_lacks() -> None:
    [reason] = [
        r.reason
        for r in in_pool("l40s", accelerators=4, cpu_milli=6000).rejections
        if r.instance_type == "g6e.xlarge"
    ]

    assert reason == "has 1 of 4 GPUs; has 3.65 CPU free of DaemonSets, 6.00 needed"


def test_the_finding_names_the_nearest_miss_of_all_pools() -> None:
    pools = {
        "small": {"accelerator": "l40s", "instanceTypes": ["g6e.xlarge"], "limit": 8},
        "mid": {"accelerator": "l40s", "instanceTypes": ["g6e.12xlarge"], "limit": 8},
    }
    environment = an_environment(pools=pools)

    [finding] = a_plan(a_model(accelerator="l40s:8"), environment=environment).findings

    assert finding.code == "CAP003"
    assert finding.message.endswith("nearest miss g6e.12xlarge has 4 of 8 GPUs")


def test_every_zone_in_the_table_is_one_of_its_region() -> None:
    for kind in accelerators():
        for instance in types_with(kind):
            for region in instance.offered_regions:
                assert offering_zones(instance, region)
                assert set(offering_zones(instance, region)) <= set(region_zones(region))


def test_zones_are_sure_only_when_there_is_no_other_choice() -> None:
    everywhere, somewhere = instance_types()["g6e.xlarge"], instance_types()["g7e.8xlarge"]

    assert surely_offered(everywhere, REGION, 1)
    assert offering_zones(somewhere, REGION) == ("use2-az1", "use2-az2")
    assert [surely_offered(somewhere, REGION, zones) for zones in (1, 2, 3)] == [False, True, True]
    assert not surely_offered(instance_types()["p5e.48xlarge"], "eu-west-3", 3)
