"""Facts about EC2's accelerators that are easy to get wrong, asserted one by one."""

from __future__ import annotations

import pytest

from modelyard.hardware import (
    Memory,
    Prices,
    accelerator_called,
    accelerators,
    instance_types,
    platform_facts,
    types_with,
)
from modelyard.memory.serving import Serving
from modelyard.planning.placement import place, pod_request
from tests.unit.given import REGION, a_model, an_environment, served

INSTANCES = instance_types()


@pytest.mark.parametrize(
    ("name", "accelerator", "count"),
    [
        ("g5.16xlarge", "a10g", 1),
        ("g6.16xlarge", "l4", 1),
        ("g6e.16xlarge", "l40s", 1),
        ("g6e.12xlarge", "l40s", 4),
        ("g6e.24xlarge", "l40s", 4),
        ("g6e.48xlarge", "l40s", 8),
        ("p5.4xlarge", "h100", 1),
        ("p5.48xlarge", "h100", 8),
        ("p4d.24xlarge", "a100", 8),
        ("p4de.24xlarge", "a100-80gb", 8),
        ("trn2.48xlarge", "trn2", 16),
    ],
)
def test_a_type_has_as_many_accelerators_as_ec2_says(name: str, accelerator: str, count: int) -> None:
    assert (INSTANCES[name].accelerator.name, INSTANCES[name].accelerator_count) == (accelerator, count)


@pytest.mark.parametrize("accelerator", ["a10g", "l4", "l40s"])
def test_no_g_type_has_two_gpus(accelerator: str) -> None:
    assert {t.accelerator_count for t in types_with(accelerator)} == {1, 4, 8}


@pytest.mark.parametrize("family", ["g6f", "gr6f", "g7", "trn2u"])
def test_types_that_karpenter_cannot_use_are_never_offered(family: str) -> None:
    """g6f counts 0 GPUs, g7 needs a newer driver, and EC2 says nothing of trn2u's Neuron devices."""
    types = [t for t in INSTANCES.values() if t.family == family]

    assert types
    assert all(t.unsupported for t in types)
    assert not any(t in types_with(t.accelerator.name) for t in types)


def test_a_fraction_of_a_gpu_counts_as_none() -> None:
    assert {t.accelerator_count for t in INSTANCES.values() if t.family in ("g6f", "gr6f")} == {0}


def test_a_pool_that_names_an_unsupported_type_does_not_get_it() -> None:
    pools = {"g7": {"accelerator": "rtx-pro-4500", "instanceTypes": ["g7.2xlarge"], "limit": 4}}
    serving = served(a_model(model="hf://Qwen/Qwen3-4B", accelerator="rtx-pro-4500"))
    assert isinstance(serving, Serving)

    placement = place(pod_request(serving), "g7", an_environment(pools=pools), Prices(REGION))

    assert placement.instance_types == ()
    assert "driver 595" in placement.rejections[0].reason


def test_a_trainium2_chip_has_96_gib() -> None:
    """EC2's API says 512 GiB; the chip has 96 GiB of HBM in four logical cores."""
    trn2 = accelerators()["trn2"]

    assert (trn2.memory, trn2.usable, trn2.cores) == (Memory.gib(96), Memory.gib(96), 4)


@pytest.mark.parametrize("name", accelerators())
def test_less_memory_is_usable_than_advertised(name: str) -> None:
    accelerator = accelerators()[name]

    if accelerator.vendor == "nvidia":
        assert Memory.gib(10) < accelerator.usable < accelerator.memory
    else:
        assert accelerator.usable == accelerator.memory
    assert accelerator.usable_source


@pytest.mark.parametrize("name", ["trn2.48xlarge", "trn2.3xlarge", "p5e.48xlarge"])
def test_some_types_have_no_public_price(name: str) -> None:
    instance = INSTANCES[name]

    prices = [instance.shipped_price(region) for region in instance.offered_regions]

    assert {price.usd_per_hour for price in prices} == {None}


def test_a_type_that_a_region_lacks_has_no_price_there() -> None:
    price = INSTANCES["trn2.48xlarge"].shipped_price("eu-west-1")

    assert (price.usd_per_hour, price.source) == (None, "not-offered")


SOURCES = {"karpenter", "skypilot", "derived", "same-as-us-east-1"}


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_type_is_complete(name: str) -> None:
    """A price has a source, a missing one a reason; a quota code is known; what is free is less than what is
    there."""
    instance = INSTANCES[name]

    for region in instance.offered_regions:
        price = instance.shipped_price(region)
        assert (price.source in SOURCES) == (price.usd_per_hour is not None)
        assert price.usd_per_hour is None or price.usd_per_hour > 0
    quota = platform_facts().quota(instance.family)
    assert quota.on_demand.startswith("L-")
    assert quota.spot.startswith("L-")
    assert quota.on_demand != quota.spot
    if instance.allocatable_memory is not None and instance.allocatable_cpu_milli is not None:
        assert instance.allocatable_memory < instance.memory
        assert instance.allocatable_cpu_milli < instance.vcpu * 1000


@pytest.mark.parametrize(
    ("family", "code"),
    [
        ("g6e", "L-DB2E81BA"),
        ("gr6", "L-DB2E81BA"),
        ("p5", "L-417A185B"),
        ("p6-b200", "L-417A185B"),
        ("trn2", "L-2C3B7624"),
        ("inf2", "L-1945791B"),
    ],
)
def test_a_family_counts_against_its_quota(family: str, code: str) -> None:
    assert platform_facts().quota(family).on_demand == code


def test_an_unknown_family_has_no_quota() -> None:
    with pytest.raises(LookupError, match="q9"):
        platform_facts().quota("q9")


@pytest.mark.parametrize(
    ("memory", "quantity"),
    [
        (Memory.gib(2), "2Gi"),
        (Memory.mib(1500), "1500Mi"),
        (Memory.bytes(1), "1Mi"),
        (Memory.gib(0.5), "512Mi"),
    ],
)
def test_memory_is_written_as_a_whole_quantity(memory: Memory, quantity: str) -> None:
    assert memory.quantity == quantity


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("h100", "h100"),
        ("H100", "h100"),
        ("NVIDIA H100 80GB", "h100"),
        ("H100 80GB", "h100"),
        ("A100 80GB", "a100-80gb"),
        ("A100 40GB", "a100"),
        ("L40S 48GB", "l40s"),
        ("l40s", "l40s"),
        ("T4 16GB", "t4"),
        ("AWS Trainium2", "trn2"),
    ],
)
def test_an_accelerator_answers_to_its_name_and_its_product(text: str, name: str) -> None:
    found = accelerator_called(text)

    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("text", ["", "gpu", "RTX 4090", "h1000", "80GB"])
def test_nothing_answers_to_another_name(text: str) -> None:
    assert accelerator_called(text) is None
