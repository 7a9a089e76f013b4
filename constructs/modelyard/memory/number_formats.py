"""Number formats against an accelerator's generation and an engine's release."""

from __future__ import annotations

from dataclasses import replace

from modelyard.architecture import Architecture
from modelyard.engines import USUAL, Release, newest_release
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.spec.model import Model

BFLOAT16 = (8, 0)
"""First compute capability with bfloat16 (NVIDIA Ampere)."""

FP8_CACHE = (8, 0)
"""First compute capability whose attention kernels read an fp8 KV cache in vLLM (FlashInfer on Ampere and Ada)."""


def number_format_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Number formats against the accelerator's generation."""
    found = format_findings(arch, accelerator, model.engine.dtype, model.engine.kv_cache_dtype, engine)
    fields: dict[tuple[str | int, ...], tuple[str, ...]] = {
        ("dtype",): ("engine", "dtype"),
        ("kvCacheDtype",): ("engine", "kvCacheDtype"),
        ("quantization",): ("model",) if accelerator.compute_capability is None else ("accelerator",),
    }
    return [replace(finding, subject=model.name, field=fields[finding.field]) for finding in found]


def format_findings(
    arch: Architecture,
    accelerator: Accelerator,
    dtype: str = "auto",
    kv_cache_dtype: str = "auto",
    engine: Release | None = None,
) -> list[Finding]:
    """Why `accelerator` cannot compute in the formats of `arch`, `dtype` and the cache; `field` is the setting at fault.

    `engine` refuses methods that it does not know; without one only the accelerator is judged.
    """
    stored = arch.quantization
    have = accelerator.compute_capability
    if accelerator.vendor == "cpu":
        return []
    if accelerator.vendor != "nvidia":
        if stored is None:
            return []
        message = f"{arch.model_id or 'the model'} is quantized with {stored.method}, which {accelerator.name} cannot run"
        return [Finding("GPU001", message, "use a 16-bit checkpoint on Neuron", field=("quantization",))]
    if have is None:
        return []
    shown = f"{accelerator.name} has compute capability {have[0]}.{have[1]}"
    problems = []
    if dtype == "bfloat16" and have < BFLOAT16:
        message = f"bfloat16 needs compute capability 8.0, {shown}"
        problems.append(
            Finding("GPU001", message, "use dtype float16, or a newer accelerator", field=("dtype",))
        )
    if kv_cache_dtype.startswith("fp8") and have < FP8_CACHE:
        message = f"an fp8 KV cache needs compute capability 8.0, {shown}"
        problems.append(
            Finding(
                "GPU001", message, "use kvCacheDtype auto, or a newer accelerator", field=("kvCacheDtype",)
            )
        )
    if stored:
        least = (engine or newest_release(USUAL)).least_capability(stored.method)
        unknown = least is None and engine is not None
        if unknown or (least and have < least):
            needs = (
                f"needs compute capability {least[0]}.{least[1]}, {shown}"
                if least
                else f"is unknown to {engine.engine if engine else USUAL}, {shown}"
            )
            message = f"quantization {stored.method} {needs}"
            fix = "use a newer accelerator or another checkpoint"
            problems.append(Finding("GPU001", message, fix, field=("quantization",)))
    return problems
