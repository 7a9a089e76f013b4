"""Accelerators and EC2 instance types: dated facts with their sources, and lookups."""

from modelyard.hardware.accelerators import (
    Accelerator,
    accelerator_called,
    accelerator_named,
    accelerator_of,
    accelerators,
    no_accelerator,
    unlisted_gpu,
)
from modelyard.hardware.gpu_features import compute_capability
from modelyard.hardware.instance_types import InstanceType, Price, instance_types, types_with
from modelyard.hardware.memory import Memory
from modelyard.hardware.platform import PlatformFacts, platform_facts
from modelyard.hardware.prices import Prices

__all__ = [
    "Accelerator",
    "InstanceType",
    "Memory",
    "PlatformFacts",
    "Price",
    "Prices",
    "accelerator_called",
    "accelerator_named",
    "accelerator_of",
    "accelerators",
    "compute_capability",
    "instance_types",
    "no_accelerator",
    "platform_facts",
    "types_with",
    "unlisted_gpu",
]
