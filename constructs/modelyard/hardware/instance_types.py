"""EC2 instance types with accelerators: size, allocatable resources in Kubernetes, and price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from modelyard.hardware.accelerators import Accelerator, accelerators, no_accelerator
from modelyard.hardware.memory import Memory
from modelyard.hardware.tables import json_table, yaml_table

NOT_OFFERED = "not-offered"
"""Price source for a region that does not offer the type."""


@dataclass(frozen=True)
class Price:
    """On-demand Linux price in US dollars per hour; if None, `source` says why."""

    usd_per_hour: float | None
    source: str


@dataclass(frozen=True)
class EfaDevices:
    """Device index of the EFA-only interface, on network card 0 and on the other cards."""

    first_card: int
    other_cards: int


@dataclass(frozen=True)
class InstanceType:
    """One EC2 instance type.

    `allocatable_cpu_milli` and `allocatable_memory`: Karpenter's figures, before DaemonSets; None if
    Karpenter has none. `unsupported`: why Modelyard never puts the type into a pool.
    """

    name: str
    vcpu: int
    memory: Memory
    arch: str
    accelerator: Accelerator
    accelerator_count: int
    local_nvme_gb: int
    efa_interfaces: int
    network_gbps: float | None
    usage_classes: tuple[str, ...]
    allocatable_cpu_milli: int | None
    allocatable_memory: Memory | None
    labels: Mapping[str, str]
    offered_regions: frozenset[str]
    unsupported: str | None
    _prices: Mapping[str, float]
    _price_sources: Mapping[str, str]

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    @property
    def efa_devices(self) -> EfaDevices:
        """Device indexes of its EFA-only interfaces."""
        known = yaml_table("fabric.yaml")["devices"]
        row = known.get(self.family, known["usual"])
        return EfaDevices(first_card=row["firstCard"], other_cards=row["otherCards"])

    def shipped_price(self, region: str) -> Price:
        """The on-demand price in `region` at the table's date. `Prices` has the current price."""
        if region not in self.offered_regions:
            return Price(None, NOT_OFFERED)
        return Price(self._prices.get(region), self._price_sources.get(region, "unknown"))


@cache
def instance_types() -> Mapping[str, InstanceType]:
    """Every known accelerated instance type by name."""
    kinds = {**accelerators(), "none": no_accelerator()}
    return MappingProxyType(
        {
            name: InstanceType(
                name=name,
                vcpu=row["vcpu"],
                memory=Memory.mib(row["memoryMib"]),
                arch=row["arch"],
                accelerator=kinds[row["accelerator"]],
                accelerator_count=row["acceleratorCount"],
                local_nvme_gb=row["localNvmeGb"],
                efa_interfaces=row["efaInterfaces"],
                network_gbps=row["networkGbps"],
                usage_classes=tuple(row["usageClasses"]),
                allocatable_cpu_milli=row["allocatableCpuMilli"],
                allocatable_memory=None
                if row["allocatableMemoryMib"] is None
                else Memory.mib(row["allocatableMemoryMib"]),
                labels=MappingProxyType(row["labels"]),
                offered_regions=frozenset(row["offeredRegions"]),
                unsupported=row.get("unsupported"),
                _prices=MappingProxyType(row["onDemandUsdPerHour"]),
                _price_sources=MappingProxyType(row["priceSource"]),
            )
            for name, row in json_table("instance_types.json")["instanceTypes"].items()
        }
    )


def types_with(accelerator: str) -> tuple[InstanceType, ...]:
    """The supported instance types with `accelerator`, smallest first."""
    found = [t for t in instance_types().values() if t.accelerator.name == accelerator and not t.unsupported]
    return tuple(sorted(found, key=lambda t: (t.accelerator_count, t.vcpu, t.name)))
