"""The architecture of a model file's checkpoint, with its weights in the format in which they are loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.checkpoints.quantization import GGUF_BITS
from modelyard.findings import Finding
from modelyard.memory.places import Field
from modelyard.memory.unknown_models import unknown_model, unstated_format
from modelyard.spec.model import Model
from modelyard.spec.weights import Weights


@dataclass(frozen=True)
class _Named:
    """Weights in a model file, their stated quantization, and their path in the file."""

    weights: Weights
    quantization: str
    subject: str
    at: Field = ()

    @property
    def loaded(self) -> str | None:
        """The format of a 16-bit checkpoint after loading: the GGUF file's type, or the engine's online
        quantization."""
        if self.weights.file:
            return f"gguf {gguf_type(self.weights.file)}"
        return None if self.quantization == "auto" else self.quantization

    def unreadable(self, problem: UnreadableConfig, fix: str, *field: str) -> Finding:
        return Finding("MODEL002", str(problem), fix, subject=self.subject, field=(*self.at, *field))


def known_architecture(model: Model) -> Architecture | Finding:
    """Architecture of `model`: from the config.json in its file, or from the table."""
    return _architecture(_Named(model.model, model.engine.quantization, model.name))


def draft_architecture(model: Model) -> Architecture | Finding | None:
    """Architecture of the draft model; None without a separate one, or for a one-layer head."""
    drafts = model.speculative_decoding
    if drafts is None or drafts.model is None or drafts.method != "draft":
        return None
    small = Weights(uri=drafts.model.uri, architecture=drafts.model.architecture, config=drafts.model.config)
    return _architecture(_Named(small, "auto", model.name, at=("speculativeDecoding",)))


def gguf_type(file: str) -> str:
    """The type in a file name, such as Q4_K_M in `model-q4_k_m-00001-of-00002.gguf`; if unknown, the end of
    the name."""
    upper = file.upper()
    known = sorted((kind for kind in GGUF_BITS if kind in upper), key=len)
    return known[-1] if known else upper.removesuffix(".GGUF").rpartition("-")[2]


def _architecture(named: _Named) -> Architecture | Finding:
    weights = named.weights
    found: Architecture | Finding
    if weights.config is not None:
        try:
            read = read_config(weights.config, model_id=weights.repository, quantization=named.loaded)
        except UnreadableConfig as problem:
            return named.unreadable(problem, "give the checkpoint's whole config.json", "model", "config")
        found = replace(_marked(named, read), source="the config.json that the model file names")
    elif (arch := architectures().get(weights.architecture or weights.repository)) is not None:
        found = _as_loaded(named, arch)
    else:
        return unknown_model(weights, named.subject, named.at)
    if isinstance(found, Finding):
        return found
    return unstated_format(weights, found, named.quantization, named.subject, named.at) or found


def _as_loaded(named: _Named, arch: Architecture) -> Architecture | Finding:
    """`arch` with the weight format of the GGUF file or the engine settings."""
    wanted, file = named.loaded, named.weights.file
    if wanted is None or (arch.quantization and not file):
        return arch
    config = {**architectures().config(arch.model_id)}
    config.pop("quantization_config", None)
    try:
        read = read_config(config, model_id=arch.model_id, quantization=wanted)
    except UnreadableConfig as problem:
        field = ("model", "file") if file else ("engine", "quantization")
        return named.unreadable(problem, "use another file or format", *field)
    return replace(_marked(named, read), gated=arch.gated, source=arch.source)


def _marked(named: _Named, arch: Architecture) -> Architecture:
    """`arch`, marked if its weights are quantized at load."""
    weights = named.weights
    if arch.quantization is None or weights.file or (weights.config or {}).get("quantization_config"):
        return arch
    return replace(arch, quantization=replace(arch.quantization, online=named.quantization != "auto"))


def images_per_prompt(model: Model, arch: Architecture) -> int | None:
    """Images per prompt: the file's setting, default one; None for a text-only model."""
    if not arch.multimodal:
        return None
    stated = model.features.images_per_prompt
    return 1 if stated is None else stated
