"""Checks of number formats against the accelerator generation and the engine release."""

from __future__ import annotations

from modelyard.checkpoints import Architecture, Quantization
from modelyard.engines import USUAL, Release, newest_release
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.hardware.gpu_features import Capability, Feature, feature_rules
from modelyard.memory.places import Field, Places
from modelyard.spec.model import Model


def file_format_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Why `accelerator` and `engine` cannot compute in the formats of a model file."""
    settings = model.engine
    return format_findings(
        arch, accelerator, Places.in_file(model), settings.dtype, settings.kv_cache_dtype, engine
    )


def format_findings(
    arch: Architecture,
    accelerator: Accelerator,
    places: Places,
    dtype: str = "auto",
    kv_cache_dtype: str = "auto",
    engine: Release | None = None,
) -> list[Finding]:
    """Why `accelerator` cannot compute in the formats of `arch`, `dtype` and the cache.

    `engine` rejects quantization methods that it does not support; without it, only the accelerator is
    checked.
    """

    def refused(message: str, fix: str, field: Field) -> Finding:
        return Finding("GPU001", message, fix, subject=places.subject, field=field)

    stored = arch.quantization
    have = accelerator.compute_capability
    if accelerator.vendor == "cpu":
        return []
    if accelerator.vendor != "nvidia":
        if stored is None:
            return []
        message = f"{arch.model_id or 'the model'} is quantized with {stored.method}, which {accelerator.name} cannot run"
        return [refused(message, "use a 16-bit checkpoint on Neuron", places.model)]
    if have is None:
        return []
    shown = f"{accelerator.name} has compute capability {have[0]}.{have[1]}"
    problems = []
    if dtype == "bfloat16" and not accelerator.has("bfloat16"):
        message = f"bfloat16 {_needs('bfloat16')}, {shown}"
        problems.append(refused(message, "use dtype float16, or a newer accelerator", places.dtype))
    if kv_cache_dtype.startswith("fp8") and not accelerator.has("fp8-cache"):
        message = f"an fp8 KV cache {_needs('fp8-cache')}, {shown}"
        problems.append(
            refused(message, "use kvCacheDtype auto, or a newer accelerator", places.kv_cache_dtype)
        )
    if stored and (lacks := _lacks(stored, have, engine)):
        message = f"quantization {stored.method} {lacks}, {shown}"
        problems.append(refused(message, "use a newer accelerator or another checkpoint", places.accelerator))
    return problems


def _lacks(stored: Quantization, have: Capability, engine: Release | None) -> str | None:
    """Why a GPU of capability `have`, or the engine, does not support a checkpoint's format."""
    least = (engine or newest_release(USUAL)).least_capability(stored.method)
    if least is None:
        return f"is unknown to {engine.engine}" if engine else None
    return _at_least(least) if have < least else None


def _needs(feature: Feature) -> str:
    since = feature_rules()[feature].since
    return _at_least(since) if since else "needs another accelerator"


def _at_least(capability: Capability) -> str:
    return f"needs compute capability {capability[0]}.{capability[1]}"
