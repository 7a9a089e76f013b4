"""What an engine release and an accelerator are able to do, against what a model asks of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from modelyard.architecture import Architecture
from modelyard.engines import USUAL, Release, newest_release
from modelyard.engines.registry import engine as engine_called
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.spec.model import Model

BFLOAT16 = (8, 0)
"""First compute capability with bfloat16 (NVIDIA Ampere)."""

FP8_CACHE = (8, 0)
"""First compute capability whose attention kernels read an fp8 KV cache in vLLM (FlashInfer on Ampere and Ada)."""


def engine_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Every reason why `engine` cannot serve `model` on `accelerator` as its file says."""
    findings = [*_checkpoint_findings(model, arch, engine), *_security_findings(model, engine)]
    for name, (field, asked) in _asked(model).items():
        if asked and name not in engine.supports:
            findings.append(
                Finding(
                    "ENG001",
                    f"{engine.engine} {engine.version} does not take {'.'.join(field)}",
                    "leave it out, or use another engine",
                    subject=model.name,
                    field=field,
                )
            )
    return [*findings, *number_format_findings(model, arch, accelerator, engine)]


def _checkpoint_findings(model: Model, arch: Architecture, engine: Release) -> Iterator[Finding]:
    """A checkpoint that the engine has no code for, or that holds nothing that the file asks for."""
    where = f"{engine.engine} {engine.version}"

    def refused(message: str, fix: str, *field: str) -> Finding:
        return Finding("ENG001", message, fix, subject=model.name, field=field)

    if arch.architecture not in engine.architectures:
        yield refused(
            f"{where} has no {arch.architecture}", "use another engine or accelerator", "accelerator"
        )
    gguf = model.model.file is not None
    if gguf and "gguf" not in engine.supports:
        yield refused(
            f"{where} does not read GGUF", "use engine llama-server, or the safetensors repository", "model"
        )
    if not gguf and "gguf" in engine.supports:
        yield refused(
            f"{where} reads GGUF files alone", "name the file in the repository: model.file", "model"
        )
    if model.task not in engine.tasks:
        yield refused(
            f"{where} does not {model.task}", f"use one of {', '.join(sorted(engine.tasks))}", "task"
        )
    if arch.encoder and model.task == "generate":
        yield refused(f"{arch.model_id} generates no text", "set task to embed or rerank", "task")
    drafts = model.speculative_decoding
    if drafts and drafts.method == "mtp" and not arch.mtp_layers:
        yield refused(
            f"{arch.model_id} has no layers for multi-token prediction",
            "use method ngram, or draft with a small model",
            *("speculativeDecoding", "method"),
        )
    if model.engine.quantization != "auto" and arch.quantization and not arch.quantization.online:
        yield refused(
            f"{arch.model_id} is quantized with {arch.quantization.method} already",
            "leave engine.quantization out, or name the 16-bit repository",
            *("engine", "quantization"),
        )
    prepared = engine_called(engine.engine).prepared
    if prepared and model.model.scheme != "efs":
        yield refused(
            f"{prepared} serves engines that were built for one GPU type",
            "build them, put repository/ and tokenizer/ into the shared cache, and use efs://PATH",
            "model",
        )


def _security_findings(model: Model, engine: Release) -> Iterator[Finding]:
    if engine.below_floor:
        yield Finding(
            "SEC003",
            f"{engine.engine} {engine.version} has a known hole, mended in {engine.floor}",
            f"use {newest_release(engine.engine).version}, or leave engine.version out",
            subject=model.name,
            field=("engine", "version"),
        )


def _asked(model: Model) -> dict[str, tuple[tuple[str, ...], bool]]:
    """What of the file needs support, by the names that releases list: its field, and whether it is asked for."""
    settings, features = model.engine, model.features
    drafts = model.speculative_decoding
    return {
        "adapters": (("adapters",), bool(model.adapters)),
        "apiKey": (("access", "apiKey"), model.access.api_key is not None),
        "batch": (("batch",), model.batch is not None),
        "disaggregation": (("disaggregation",), model.disaggregation is not None),
        "dtype": (("engine", "dtype"), settings.dtype != "auto"),
        "enforceEager": (("engine", "enforceEager"), settings.enforce_eager),
        "images": (
            ("features", "imagesPerPrompt"),
            features.images_per_prompt is not None,
        ),
        "kvCacheDtype": (("engine", "kvCacheDtype"), settings.kv_cache_dtype != "auto"),
        "kvOffload": (("features", "kvOffload"), features.kv_offload is not None),
        "parallelism": (("parallelism",), model.parallelism is not None),
        "quantization": (("engine", "quantization"), settings.quantization != "auto"),
        "reasoning": (("features", "reasoning"), features.reasoning),
        "servedNames": (("model", "servedNames"), len(model.model.served_names) > 1),
        "sleep": (("features", "sleep"), features.sleep),
        "speculativeDecoding": (("speculativeDecoding",), drafts is not None),
        "stream": (("cache",), model.cache_strategy == "s3-stream"),
        "structuredOutputs": (("features", "structuredOutputs"), features.structured_outputs != "auto"),
        "tools": (("features", "tools"), features.tools),
        "trustRemoteCode": (("model", "trustRemoteCode"), model.model.trust_remote_code is not None),
    }


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
