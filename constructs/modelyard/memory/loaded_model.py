"""The architecture of a model file's checkpoint, with its weights in the format in which they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from modelyard.checkpoints import Architecture, UnreadableConfig, architectures, read_config
from modelyard.checkpoints.stored import with_stored
from modelyard.checkpoints.tensor_types import gguf_bits
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
    if drafts.model.record:
        small = small.recorded(drafts.model.record)
    return _architecture(_Named(small, "auto", model.name, at=("speculativeDecoding",)))


def gguf_type(file: str) -> str:
    """The type in a file name, such as Q4_K_M in `model-q4_k_m-00001-of-00002.gguf`; if unknown, the end of
    the name."""
    upper = file.upper()
    known = sorted((kind for kind in gguf_bits() if kind in upper), key=len)
    return known[-1] if known else upper.removesuffix(".GGUF").rpartition("-")[2]


def _architecture(named: _Named) -> Architecture | Finding:
    found = _described(named)
    record = named.weights.record
    if record is None or isinstance(found, Finding) or (found.quantization and found.quantization.online):
        return found
    tensors = record.tensors_of(named.weights.file)
    return with_stored(found, tensors, gguf=named.weights.file is not None) if tensors else found


def _described(named: _Named) -> Architecture | Finding:
    """The architecture by the config.json that the model file names, its record's, or the table's."""
    weights = named.weights
    found: Architecture | Finding
    if weights.config is not None:
        source = "the config.json that the model file names"
        found = _read(named, weights.config, source, "give the checkpoint's whole config.json", "config")
    elif (record := weights.record) is not None and weights.architecture is None:
        config = record.config
        if weights.file:
            config = {key: value for key, value in config.items() if key != "quantization_config"}
        at = f" at {record.revision[:12]}" if record.revision else ""
        source = f"the record of {weights.uri}{at}, {record.date}"
        found = _read(named, config, source, f"refresh the record: modelyard model add {weights.uri}")
        found = found if isinstance(found, Finding) else replace(found, gated=record.gated)
    elif (arch := architectures().get(weights.architecture or weights.repository)) is not None:
        found = _as_loaded(named, arch)
    else:
        return unknown_model(weights, named.subject, named.at)
    if isinstance(found, Finding):
        return found
    return unstated_format(weights, found, named.quantization, named.subject, named.at) or found


def _read(
    named: _Named, config: Mapping[str, Any], source: str, fix: str, *field: str
) -> Architecture | Finding:
    try:
        read = read_config(config, model_id=named.weights.repository, quantization=named.loaded)
    except UnreadableConfig as problem:
        return named.unreadable(problem, fix, "model", *field)
    return replace(_marked(named, read, config), source=source)


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
    return replace(_marked(named, read, config), gated=arch.gated, source=arch.source)


def _marked(named: _Named, arch: Architecture, config: Mapping[str, Any]) -> Architecture:
    """`arch`, marked if its weights are quantized at load."""
    if arch.quantization is None or named.weights.file or config.get("quantization_config"):
        return arch
    return replace(arch, quantization=replace(arch.quantization, online=named.quantization != "auto"))


def images_per_prompt(model: Model, arch: Architecture) -> int | None:
    """Images per prompt: the file's setting, default one; None for a text-only model."""
    if not arch.multimodal:
        return None
    stated = model.features.images_per_prompt
    return 1 if stated is None else stated
