"""Checks whether an engine release supports what a model requires."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.checkpoints import Architecture
from modelyard.engines import Release, newest_release
from modelyard.engines.registry import engine as engine_called
from modelyard.findings import Finding
from modelyard.hardware import Accelerator
from modelyard.memory.number_formats import file_format_findings
from modelyard.spec.model import Model


def engine_findings(
    model: Model, arch: Architecture, accelerator: Accelerator, engine: Release
) -> list[Finding]:
    """Every reason why `engine` cannot serve `model` on `accelerator` as configured."""
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
    return [*findings, *file_format_findings(model, arch, accelerator, engine)]


def _checkpoint_findings(model: Model, arch: Architecture, engine: Release) -> Iterator[Finding]:
    """A checkpoint that the engine does not support, or that cannot do what the model file asks."""
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
    """Settings that need engine support, by the names in the release's `supports`: field path, and whether
    the file uses it."""
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
