"""Accelerators that EC2 offers, with the memory a framework can really address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from modelyard.hardware.memory import Memory
from modelyard.hardware.tables import yaml_table

Capability = tuple[int, int]


@dataclass(frozen=True)
class Accelerator:
    """One kind of GPU or Neuron device.

    `memory` is what EC2 states for one device, `usable` what the framework sees. `compute_capability` is None on
    Neuron; `cores` are the logical cores of a device, which Neuron counts for tensor parallelism, and 1 on a GPU.
    """

    name: str
    product: str
    vendor: Literal["nvidia", "aws"]
    memory: Memory
    usable: Memory
    compute_capability: Capability | None
    cores: int
    bandwidth_gb_per_second: float
    usable_source: str

    @property
    def resource(self) -> str:
        """The extended resource that pods request."""
        return "nvidia.com/gpu" if self.vendor == "nvidia" else "aws.amazon.com/neuron"

    @property
    def taint(self) -> str:
        """Key of the NoSchedule taint on its nodes: the resource for GPUs, the vendor's habit for Neuron."""
        return self.resource


def compute_capability(text: str) -> Capability:
    """`8.9` as (8, 9)."""
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every known accelerator by name."""
    rows = yaml_table("accelerators.yaml")["accelerators"]
    return MappingProxyType(
        {
            name: Accelerator(
                name=name,
                product=row["product"],
                vendor=row["vendor"],
                memory=Memory.mib(row["memoryMib"]),
                usable=Memory.gib(row["usableGib"]),
                compute_capability=compute_capability(row["computeCapability"])
                if "computeCapability" in row
                else None,
                cores=row.get("coresPerDevice", 1),
                bandwidth_gb_per_second=row["bandwidthGBs"],
                usable_source=row["usableSource"],
            )
            for name, row in rows.items()
        }
    )
