"""What an engine release and an accelerator are able to do, against what a model asks of them."""

from __future__ import annotations

from modelyard.engines import Release
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.planning.architecture import Architecture
from modelyard.spec.model import Model

BFLOAT16 = (8, 0)
"""First compute capability with bfloat16 (NVIDIA Ampere)."""


def engine_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Every reason why `engine` cannot serve `model` on `accelerator` as its file says."""
    findings = []
    if arch.architecture not in engine.architectures:
        findings.append(
            Finding(
                "ENG001",
                f"{engine.engine} {engine.version} has no {arch.architecture}",
                "use another engine or accelerator",
                subject=model.name,
                field=("accelerator",),
            )
        )
    if engine.engine == "vllm-neuron":
        findings += _without_effect_on_neuron(model, engine)
    return [*findings, *number_format_findings(model, arch, accelerator, engine)]


def _without_effect_on_neuron(model: Model, engine: Release) -> list[Finding]:
    """Settings that the plugin has no flag for: the ledger would count what the server never hears of."""
    settings = model.engine
    asked = {
        ("engine", "dtype"): settings.dtype != "auto",
        ("engine", "kvCacheDtype"): settings.kv_cache_dtype != "auto",
        ("engine", "enforceEager"): settings.enforce_eager,
        ("features", "imagesPerPrompt"): model.features.images_per_prompt is not None,
        ("adapters",): bool(model.adapters),
        ("speculativeDecoding",): model.speculative_decoding is not None,
    }
    return [
        Finding(
            "ENG001",
            f"{engine.engine} {engine.version} does not take {'.'.join(field)}",
            "leave it out, or use a GPU",
            subject=model.name,
            field=field,
        )
        for field, wanted in asked.items()
        if wanted
    ]


def number_format_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Number formats against the accelerator's generation."""
    if accelerator.compute_capability is None:
        if arch.quantization is None:
            return []
        return [
            Finding(
                "GPU001",
                f"{arch.model_id} is quantized with {arch.quantization.method}, which {accelerator.name} cannot run",
                "use a 16-bit checkpoint on Neuron",
                subject=model.name,
                field=("model",),
            )
        ]
    have = accelerator.compute_capability
    shown = f"{accelerator.name} has compute capability {have[0]}.{have[1]}"
    problems = []
    if model.engine.dtype == "bfloat16" and have < BFLOAT16:
        problems.append(
            Finding(
                "GPU001",
                f"bfloat16 needs compute capability 8.0, {shown}",
                "use dtype float16, or a newer accelerator",
                subject=model.name,
                field=("engine", "dtype"),
            )
        )
    if arch.quantization:
        least = engine.least_capability(arch.quantization.method)
        if least is None or have < least:
            needs = (
                f"needs compute capability {least[0]}.{least[1]}"
                if least
                else f"is unknown to {engine.engine}"
            )
            problems.append(
                Finding(
                    "GPU001",
                    f"quantization {arch.quantization.method} {needs}, {shown}",
                    "use a newer accelerator or another checkpoint",
                    subject=model.name,
                    field=("accelerator",),
                )
            )
    return problems
