"""Findings about checkpoints that are in no table, and about names that say more than the model file."""

from __future__ import annotations

from modelyard.checkpoints import Architecture, architectures
from modelyard.checkpoints.derivatives import NamedFormat, base_of, format_in, in_the_same_format
from modelyard.findings import Finding
from modelyard.memory.places import Field
from modelyard.reading import suggestion
from modelyard.spec.weights import Weights


def unknown_model(weights: Weights, subject: str, at: Field) -> Finding:
    """No facts for `weights`: what it looks like, and what to write instead."""
    wanted = weights.architecture or weights.repository
    field = (*at, "model", "architecture") if weights.architecture else (*at, "model")

    def finding(message: str, fix: str) -> Finding:
        return Finding(
            "MODEL001", f"no architecture facts for '{wanted}'{message}", fix, subject=subject, field=field
        )

    others = f"{_add(weights)} records its facts, and `modelyard catalog models` lists what is known"
    if weights.architecture or weights.scheme != "hf" or not (base := base_of(wanted)):
        near = suggestion(wanted, architectures().repositories())
        return finding("", f"{near}set model.config to the path of its config.json, or model.architecture to a "
                       f"repository with the same one: {others}")  # fmt: skip
    named = format_in(wanted)
    if named is None:
        return finding(
            f", which looks like {base}",
            f"where its config.json is the same, write {_yaml(weights, f'architecture: {base}')}: {others}",
        )
    return finding(f", which looks like {base} in {named.written}", _stated(weights, base, named))


def unstated_format(
    weights: Weights, arch: Architecture, quantization: str, subject: str, at: Field
) -> Finding | None:
    """The name of the repository has a number format that `arch`, the facts of the model file, has not.

    `quantization`: the file's setting for the engine. A config.json that says how it is quantized is taken,
    whatever the name says, and so are recorded tensors.
    """
    named = format_in(weights.repository)
    if named is None or weights.file or quantization == named.kind:
        return None
    have = arch.quantization
    gguf = named.kind == "gguf"
    recorded = weights.record is not None and weights.architecture is None
    read = recorded or weights.config is not None
    own = weights.architecture is None and not read
    measured = recorded and weights.record is not None and weights.record.tensors_of(None)
    if not gguf and (own or measured or (have and (read or named.bits == have.bits))):
        return None
    if gguf:
        message = f"{weights.repository} holds GGUF files, and the model file names none"
    else:
        held = f"{have.bits} bit" if have else "16 bit"
        message = f"the name {weights.repository} says {named.written}, and the facts that the file gives say {held}"
    base = base_of(weights.repository) or weights.architecture or arch.model_id
    field = ("model", "config") if weights.config is not None else ("model",)
    return Finding("MODEL005", message, _stated(weights, base, named), subject=subject, field=(*at, *field))


def _stated(weights: Weights, base: str, named: NamedFormat) -> str:
    """How to state the format `named` of a checkpoint made from `base`."""
    if named.kind == "gguf":
        same = "" if weights.repository in architectures() else f", architecture: {base}"
        return (
            f"write {_yaml(weights, f'file: NAME.gguf{same}')} with the file's name; llama-server reads GGUF"
        )
    sibling = in_the_same_format(base, named)
    known = (
        f"; or {_yaml(weights, f'architecture: {sibling}')} where it is quantized as that is"
        if sibling
        else ""
    )
    path = weights.repository.rpartition("/")[2].lower()
    written = f"write {_yaml(weights, f'config: {path}.json')} with its config.json, whose quantization_config says how"
    if weights.scheme == "hf":
        return f"run {_add(weights)}, which records how it is quantized; or {written}{known}"
    return f"{written}{known}"


def _yaml(weights: Weights, more: str) -> str:
    return f"`model: {{uri: {weights.uri}, {more}}}`"


def _add(weights: Weights) -> str:
    repository = weights.repository if weights.scheme == "hf" else "ORG/NAME"
    return f"`modelyard model add hf://{repository}`"
