"""Accelerators that EC2 offers, with the memory that a framework can address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

from modelyard.hardware.gpu_features import Capability, Feature, compute_capability, features_of
from modelyard.hardware.memory import Memory
from modelyard.hardware.tables import yaml_table


@dataclass(frozen=True)
class Accelerator:
    """One kind of GPU or Neuron device.

    `memory`: per device, as stated by EC2; `usable`: as seen by the framework. `compute_capability`: None on
    Neuron. `cores`: logical cores per device, which Neuron counts for tensor parallelism; 1 on a GPU.
    `features`: from the compute capability, unless overridden in its row. `peak_tflops`: dense, for the whole
    device, by number format (fp16, fp8, int8, fp4), in 10¹² operations per second.
    """

    name: str
    product: str
    vendor: Literal["nvidia", "aws", "cpu"]
    memory: Memory
    usable: Memory
    compute_capability: Capability | None
    cores: int
    bandwidth_gb_per_second: float
    usable_source: str
    peak_tflops: Mapping[str, float] = field(hash=False)
    peak_source: str
    features: frozenset[str] = frozenset()

    def has(self, feature: Feature) -> bool:
        """Whether it has a feature from `gpu_features.yaml`, such as NVLink between its ranks."""
        return feature in self.features

    @property
    def resource(self) -> str:
        """The resource that pods request and pools limit."""
        return {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron", "cpu": "cpu"}[self.vendor]

    @property
    def plural(self) -> str:
        """What several of it are called."""
        return {"nvidia": "GPUs", "aws": "Neuron devices", "cpu": "vCPU"}[self.vendor]

    @property
    def taint(self) -> str:
        """Key of the NoSchedule taint on its nodes: the resource name, as device plugins expect."""
        return "modelyard.dev/models-on-cpu" if self.vendor == "cpu" else self.resource


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
                compute_capability=_capability(row),
                cores=row.get("coresPerDevice", 1),
                bandwidth_gb_per_second=row["bandwidthGBs"],
                usable_source=row["usableSource"],
                peak_tflops=MappingProxyType(dict(row["tflops"])),
                peak_source=row["tflopsSource"],
                features=(features_of(_capability(row)) | {*row.get("features", ())})
                - {*row.get("lacks", ())},
            )
            for name, row in rows.items()
        }
    )


def _capability(row: Mapping[str, Any]) -> Capability | None:
    return compute_capability(row["computeCapability"]) if "computeCapability" in row else None


@cache
def no_accelerator() -> Accelerator:
    """Accelerator `none` in model files: a vCPU of a Graviton node with its share of memory."""
    row = yaml_table("accelerators.yaml")["cpu"]
    return Accelerator(
        name="none",
        product=row["product"],
        vendor="cpu",
        memory=Memory.mib(row["memoryMib"]),
        usable=Memory.gib(row["usableGib"]),
        compute_capability=None,
        cores=1,
        bandwidth_gb_per_second=row["bandwidthGBs"],
        usable_source=row["usableSource"],
        peak_tflops=MappingProxyType(dict(row["tflops"])),
        peak_source=row["tflopsSource"],
    )


def accelerator_named(name: str) -> Accelerator | None:
    """The accelerator by its name in model and environment files, `none` included; None if unknown."""
    return no_accelerator() if name == "none" else accelerators().get(name)


def accelerator_of(name: str) -> Accelerator:
    """The accelerator by a name that was already checked.

    Raises:
        KeyError: the name is unknown.
    """
    return no_accelerator() if name == "none" else accelerators()[name]


def accelerator_called(text: str) -> Accelerator | None:
    """The accelerator by name or product: `h100`, `H100 80GB` and `NVIDIA H100 80GB` are the same; None if
    unknown."""
    wanted = _plain(text)
    known = list(accelerators().values())
    for names in ([_plain(a.name) for a in known], [_plain(a.product) for a in known]):
        if wanted in names:
            return known[names.index(wanted)]
    alone = re.sub(
        r"[\s-]+\d+ ?gb$", "", text, flags=re.IGNORECASE
    )  # a memory size that the name does not need
    return accelerator_called(alone) if alone != text else None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().replace("nvidia", "").replace("aws", ""))


def unlisted_gpu(usable: Memory, capability: Capability | None) -> Accelerator:
    """An NVIDIA GPU that EC2 does not sell, by its usable memory; its speed is unknown."""
    return Accelerator(
        name="unlisted",
        product="a GPU outside the table",
        vendor="nvidia",
        memory=usable,
        usable=usable,
        compute_capability=capability,
        cores=1,
        bandwidth_gb_per_second=0.0,
        usable_source="stated by the caller",
        peak_tflops=MappingProxyType({}),
        peak_source="",
        features=features_of(capability),
    )
