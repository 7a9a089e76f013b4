"""The architecture of what a model file names, in the format that its weights have once they are loaded."""

from __future__ import annotations

from dataclasses import replace

from modelyard.architecture import Architecture, UnreadableConfig, architectures, read_config
from modelyard.architecture.quantization import GGUF_BITS
from modelyard.findings import Finding
from modelyard.spec.engine import Engine
from modelyard.spec.model import Model
from modelyard.spec.weights import Weights


def known_architecture(model: Model) -> Architecture | Finding:
    """Architecture facts of `model`: from the config.json that its file names, or from the table."""
    if model.model.config is not None:
        try:
            read = read_config(
                model.model.config, model_id=model.model.repository, quantization=_loaded_quantization(model)
            )
            return replace(_marked(model, read), source="the config.json that the model file names")
        except UnreadableConfig as problem:
            return Finding(
                "MODEL002",
                str(problem),
                "give the checkpoint's whole config.json",
                subject=model.name,
                field=("model", "config"),
            )
    wanted = model.model.architecture or model.model.repository
    if (arch := architectures().get(wanted)) is not None:
        return _as_loaded(model, arch)
    field = ("model", "architecture") if model.model.architecture else ("model",)
    return Finding(
        "MODEL001",
        f"no architecture facts for '{wanted}'",
        "set model.config to the path of its config.json, or model.architecture to a repository with the same one "
        "(`modelyard catalog models`)",
        subject=model.name,
        field=field,
    )


def _loaded_quantization(model: Model) -> str | None:
    """What becomes of a 16-bit checkpoint: a GGUF file's own type, or what the engine makes of it while it loads."""
    if model.model.file:
        return f"gguf {gguf_type(model.model.file)}"
    return {"fp8": "fp8", "int8": "int8", "auto": None}[model.engine.quantization]


def gguf_type(file: str) -> str:
    """The type in a file's name, such as Q4_K_M in `model-q4_k_m-00001-of-00002.gguf`; the name's end where none is."""
    upper = file.upper()
    known = sorted((kind for kind in GGUF_BITS if kind in upper), key=len)
    return known[-1] if known else upper.removesuffix(".GGUF").rpartition("-")[2]


def _as_loaded(model: Model, arch: Architecture) -> Architecture | Finding:
    """`arch` in the format that the file or the engine's settings give its weights."""
    wanted = _loaded_quantization(model)
    if wanted is None or (arch.quantization and not model.model.file):
        return arch
    config = {**architectures().config(arch.model_id)}
    config.pop("quantization_config", None)
    try:
        read = read_config(config, model_id=arch.model_id, quantization=wanted)
    except UnreadableConfig as problem:
        field = ("model", "file") if model.model.file else ("engine", "quantization")
        return Finding(
            "MODEL002", str(problem), "use another file or format", subject=model.name, field=field
        )
    return replace(_marked(model, read), gated=arch.gated, source=arch.source)


def _marked(model: Model, arch: Architecture) -> Architecture:
    """`arch` with the mark of what is quantized while it is loaded."""
    if arch.quantization is None or model.model.file or (model.model.config or {}).get("quantization_config"):
        return arch
    online = model.engine.quantization != "auto"
    return replace(arch, quantization=replace(arch.quantization, online=online))


def draft_architecture(model: Model) -> Architecture | Finding | None:
    """Architecture facts of the small model that drafts; None where no other model does, or only a head of one layer."""
    drafts = model.speculative_decoding
    if drafts is None or drafts.model is None or drafts.method != "draft":
        return None
    as_model = model.model_copy(
        update={
            "model": Weights(
                uri=drafts.model.uri, architecture=drafts.model.architecture, config=drafts.model.config
            ),
            "engine": Engine(),
        }
    )
    found = known_architecture(as_model)
    return (
        replace(found, field=("speculativeDecoding", *found.field)) if isinstance(found, Finding) else found
    )


def images_per_prompt(model: Model, arch: Architecture) -> int | None:
    """Images that a prompt may hold: what the file says, else one; None for a model of text."""
    if not arch.multimodal:
        return None
    stated = model.features.images_per_prompt
    return 1 if stated is None else stated
