"""Tensors that a checkpoint of an architecture has, under the names of transformers."""

from __future__ import annotations

from modelyard.checkpoints import Architecture, Module, modules
from modelyard.checkpoints.modules import draft_modules
from modelyard.memory.weights import format_of

Tensor = tuple[str, tuple[int, ...]]


def tensors_of(arch: Architecture) -> dict[str, Tensor]:
    """Every tensor of `arch`, drafts included, as its format stores it."""
    found: dict[str, Tensor] = {}
    for module in (*modules(arch), *draft_modules(arch)):
        prefix = "" if module.kind in ("vision", "head") else "model."
        for number in range(module.copies):
            name = module.name.replace(".experts.0.", f".experts.{number}.")
            found |= _of_module(arch, module, f"{prefix}{name}")
    return found


def _of_module(arch: Architecture, module: Module, name: str) -> dict[str, Tensor]:
    form = format_of(arch, module)
    rows, columns = module.outputs, module.inputs
    plain = "F32" if arch.bytes_per_parameter == 4 else "BF16"
    if form.name == "16bit":
        return {f"{name}.weight": (plain, (rows, columns))}
    if form.name in ("fp8", "int8"):
        block = form.block
        scales = (-(-rows // block), -(-columns // block)) if block else (rows, 1)
        kind = "F8_E4M3" if form.name == "fp8" else "I8"
        return {f"{name}.weight": (kind, (rows, columns)), f"{name}.weight_scale_inv": ("F32", scales)}
    # Packed formats: one tensor of bytes with the weights, one with the scales.
    return {
        f"{name}.qweight": ("U8", (round(form.payload_of(columns, rows)),)),
        f"{name}.scales": ("U8", (round(form.scales_of(columns, rows)),)),
    }
