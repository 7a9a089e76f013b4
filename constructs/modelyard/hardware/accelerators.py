"""Accelerators that EC2 offers, with the memory a framework can really address."""

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

    `memory` is what EC2 states for one device, `usable` what the framework sees. `compute_capability` is None
    on Neuron; `cores` are the logical cores of a device, which Neuron counts for tensor parallelism, and 1 on
    a GPU. `features` are those of its compute capability unless its row says otherwise. `peak_tflops` of the
    whole device by number format (fp16, fp8, int8, fp4), dense, in 10¹² operations a second.
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
        """Whether it has a feature of `gpu_features.yaml`, such as NVLink between its ranks."""
        return feature in self.features

    @property
    def resource(self) -> str:
        """The resource that pods request and pools limit."""
        return {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron", "cpu": "cpu"}[self.vendor]

    @property
    def taint(self) -> str:
        """Key of the NoSchedule taint on its nodes: the resource, as device plugins expect."""
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
    """A vCPU of a Graviton node and its share of memory, as if it were an accelerator: what `none` means in
    model files."""
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
    """The accelerator of model and environment files, `none` among them; None for a name that is neither."""
    return no_accelerator() if name == "none" else accelerators().get(name)


def accelerator_of(name: str) -> Accelerator:
    """The accelerator of a name that was checked before.

    Raises:
        KeyError: it is not known.
    """
    return no_accelerator() if name == "none" else accelerators()[name]


def accelerator_called(text: str) -> Accelerator | None:
    """The accelerator of that name or product: `h100`, `H100 80GB` and `NVIDIA H100 80GB` are one; None when
    none is."""
    wanted = _plain(text)
    known = list(accelerators().values())
    for names in ([_plain(a.name) for a in known], [_plain(a.product) for a in known]):
        if wanted in names:
            return known[names.index(wanted)]
    alone = re.sub(
        r"[\s-]+\d+ ?gb$", "", text, flags=re.IGNORECASE
    )  # the memory beside a name that says it all
    return accelerator_called(alone) if alone != text else None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower().replace("nvidia", "").replace("aws", ""))


def unlisted_gpu(usable: Memory, capability: Capability | None) -> Accelerator:
    """An NVIDIA GPU that EC2 does not sell, by what the framework sees of its memory; its speed is not
    known."""
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
