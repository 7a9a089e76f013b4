"""Weight formats of checkpoints: Hugging Face's `quantization_config`, and bytes per matrix on the device."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from modelyard.checkpoints.module_patterns import ModulePatterns, WrongPattern, module_patterns
from modelyard.checkpoints.tensor_types import gguf_bits

# MXFP4 has one 8-bit exponent per 32 values (OCP Microscaling 1.0); NVFP4 one FP8 scale per 16.
_MX_BLOCK = 32
_NV_BLOCK = 16
# NF4 has one 8-bit scale per 64 values, and one 32-bit scale per 256 of these scales (QLoRA, double
# quantization).
_NF_BLOCK = 64
_NF_OUTER = 256
_GROUP = 128

FormatName = Literal["16bit", "fp8", "int8", "int4", "nf4", "mxfp4", "nvfp4", "gguf"]


@dataclass(frozen=True)
class Format:
    """A storage format of a matrix. `block`: side of the square that shares an FP8 scale; `group`: number of
    values that share a scale."""

    name: FormatName
    bits: float = 16.0
    group: int = 0
    block: int = 0
    zero_points: bool = False

    def bytes_of(self, inputs: int, outputs: int, plain: int = 2) -> float:
        """Bytes of an `inputs` × `outputs` matrix with scales; `plain`: bytes per unquantized number."""
        return self.payload_of(inputs, outputs, plain) + self.scales_of(inputs, outputs)

    def payload_of(self, inputs: int, outputs: int, plain: int = 2) -> float:
        """Bytes of the weights without scales."""
        return inputs * outputs * (plain if self.name == "16bit" else self.bits / 8)

    def scales_of(self, inputs: int, outputs: int) -> float:
        """Bytes of scales and zero points, which are separate tensors."""
        size = inputs * outputs
        if self.name == "fp8" and self.block:
            return 4 * (-(-inputs // self.block)) * (-(-outputs // self.block))
        if self.name in ("fp8", "int8"):
            return 4 * outputs
        if self.name == "int4":
            scale = 2 + (self.bits / 8 if self.zero_points else 0)
            return scale * outputs * (inputs / self.group if self.group else 1)
        if self.name == "nf4":
            return size * (1 + 4 / _NF_OUTER) / _NF_BLOCK
        if self.name == "mxfp4":
            return size / _MX_BLOCK
        return size / _NV_BLOCK if self.name == "nvfp4" else 0.0


PLAIN = Format("16bit")


@dataclass(frozen=True)
class Quantization:
    """How a checkpoint is quantized.

    `method`: Hugging Face's `quant_method`; `bits`: bits per weight. `exceptions`: patterns of modules that
    stay in 16 bit; `rules`: patterns with their own format; `embeddings`: whether embeddings are quantized
    too (GGUF). `online`: a 16-bit checkpoint that the engine quantizes at load. `cache`: the number format
    that the checkpoint asks of the KV cache; empty: none that an engine follows.
    """

    method: str
    bits: int
    format: Format
    exceptions: tuple[str, ...] = ()
    rules: tuple[tuple[str, Format], ...] = ()
    experts_only: bool = False
    embeddings: bool = False
    online: bool = False
    cache: Literal["", "fp8"] = ""

    @cached_property
    def _kept(self) -> ModulePatterns:
        return module_patterns(self.exceptions)

    @cached_property
    def _ruled(self) -> ModulePatterns:
        return module_patterns(pattern for pattern, _ in self.rules)

    def format_of(self, module: str) -> Format:
        """Format of the linear layer called `module`, such as `layers.3.mlp.down_proj`."""
        if self._kept.first(module) is not None:
            return PLAIN
        if (place := self._ruled.first(module)) is not None:
            return self.rules[place][1]
        if self.experts_only and ".experts" not in module:
            return PLAIN
        return self.format


class UnknownQuantization(ValueError):
    """A quantization without a known formula."""


def read_quantization(config: Mapping[str, Any] | None, override: str | None = None) -> Quantization | None:
    """The `quantization_config` of a `config.json`; `override` quantizes a 16-bit checkpoint at load
    (`--quantization`).

    Raises:
        UnknownQuantization: no formula is known for the method.
    """
    if not config:
        return _named(override.lower(), {}) if override else None
    found = _named(str(config.get("quant_method") or override or "").lower(), config)
    if found.method in ("modelopt", "compressed-tensors"):
        found = replace(found, cache=_cache(config))
    try:
        module_patterns((*found.exceptions, *(pattern for pattern, _ in found.rules)))
    except WrongPattern as problem:
        raise UnknownQuantization(str(problem)) from None
    return found


def _named(method: str, config: Mapping[str, Any]) -> Quantization:
    method, *said = re.split(r"[ /]+", method)
    method = method.removesuffix("_marlin").replace("_", "-")
    bits = int(config.get("bits") or config.get("w_bit") or _bits_said(said))
    group = int(config.get("group_size") or config.get("q_group_size") or _GROUP)
    skipped = _texts(config.get("modules_to_not_convert"), config.get("ignore"), config.get("ignored_layers"))
    if method in ("awq", "auto-awq"):
        zero = bool(config.get("zero_point", True))
        return Quantization("awq", bits, Format("int4", bits, group, zero_points=zero), skipped)
    if method in ("gptq", "auto-gptq", "auto-round", "inc", "gptqmodel", "intel"):
        excluded = (*skipped, *_dynamic_exclusions(config))
        return Quantization("gptq", bits, Format("int4", bits, max(group, 0), zero_points=True), excluded)
    if method == "fp8":
        block = (config.get("weight_block_size") or [0])[0]
        return Quantization("fp8", 8, Format("fp8", 8, block=int(block)), skipped)
    if method == "fbgemm-fp8":
        # Checkpoints with this method keep attention in 16 bit (listed in modules_to_not_convert of Llama 3.1
        # 405B).
        return Quantization("fbgemm_fp8", 8, Format("fp8", 8), skipped or ("*self_attn*",))
    if method == "mxfp4" or method == "gpt-oss-mxfp4":
        return Quantization("mxfp4", 4, Format("mxfp4", 4), skipped, experts_only=True)
    if method in ("bitsandbytes", "bnb"):
        four = config.get("load_in_4bit", config.get("_load_in_4bit", not config.get("load_in_8bit")))
        stored = Format("nf4", 4) if four else Format("int8", 8)
        return Quantization(
            "bitsandbytes", 4 if four else 8, stored, _texts(config.get("llm_int8_skip_modules"))
        )
    if method == "gguf":
        kind = str(config.get("type") or (said or ["Q4_K_M"])[0]).upper()
        if (bits_stored := gguf_bits().get(kind)) is None:
            raise UnknownQuantization(f"GGUF type {kind}; known are {', '.join(gguf_bits())}")
        return Quantization("gguf", round(bits_stored), Format("gguf", bits_stored), embeddings=True)
    if method.startswith("modelopt"):
        return _modelopt(config, skipped)
    if method in ("nvfp4", "fp4"):
        return Quantization("modelopt", 4, Format("nvfp4", 4), skipped)
    if method == "compressed-tensors":
        return _compressed_tensors(config, skipped, bits)
    if method in ("8-bit", "w8a16", "experts-int8", "int8"):
        return Quantization(
            "compressed-tensors", 8, Format("int8", 8), skipped, experts_only="experts" in method
        )
    raise UnknownQuantization(f"quantization method '{method}'")


def _bits_said(words: list[str]) -> int:
    """The bit width in a name such as `compressed-tensors w8a8`; default 4, the usual width of AWQ and
    GPTQ."""
    return 8 if any(mark in word for word in words for mark in ("w8", "int8", "fp8")) else 4


def _compressed_tensors(config: Mapping[str, Any], skipped: tuple[str, ...], bits: int) -> Quantization:
    """Module groups by target; modules in `ignore` stay in 16 bit."""
    rules: list[tuple[str, Format]] = []
    main: Format | None = None
    for group in (config.get("config_groups") or {}).values():
        stored = _scheme(group.get("weights") or {})
        targets = [str(target) for target in group.get("targets", ("Linear",))]
        if "Linear" in targets:
            main = stored
        else:
            rules += [(target, stored) for target in targets]
    if main is None and not rules:
        main = Format("int4", bits, _GROUP) if bits == 4 else Format("int8", 8)
    return Quantization(
        "compressed-tensors", int((main or rules[0][1]).bits), main or PLAIN, skipped, tuple(rules)
    )


def _scheme(weights: Mapping[str, Any]) -> Format:
    bits = int(weights.get("num_bits") or 8)
    group = int(weights.get("group_size") or 0)
    floating = weights.get("type") == "float"
    if floating and bits == 4:
        return Format("mxfp4", 4) if group == _MX_BLOCK else Format("nvfp4", 4)
    if floating:
        block = (weights.get("block_structure") or [0])[0]
        return Format("fp8", 8, block=int(block))
    if bits == 8 and not group:
        return Format("int8", 8)
    return Format("int4", bits, group, zero_points=not weights.get("symmetric", True))


def _modelopt(config: Mapping[str, Any], skipped: tuple[str, ...]) -> Quantization:
    algorithm = str(config.get("quant_algo") or "").upper()
    rules = tuple(
        (name, _algorithm(str(layer.get("quant_algo", "")), layer))
        for name, layer in (config.get("quantized_layers") or {}).items()
    )
    if algorithm == "MIXED_PRECISION" or (rules and not algorithm):
        return Quantization("modelopt", 4, PLAIN, skipped, rules)
    return Quantization(
        "modelopt", 8 if "FP8" in algorithm else 4, _algorithm(algorithm, config), skipped, rules
    )


def _cache(config: Mapping[str, Any]) -> Literal["", "fp8"]:
    """What `kv_cache_scheme` or ModelOpt's `kv_cache_quant_algo` asks for, as vLLM reads it
    (utils/torch_utils.py, get_kv_cache_quant_algo_string)."""
    inner = config.get("quantization")
    parts = [part for part in (inner, config) if isinstance(part, Mapping)]
    asked = next(
        (part[key] for key in ("kv_cache_scheme", "kv_cache_quant_algo") for part in parts if part.get(key)),
        None,
    )
    if isinstance(asked, Mapping):
        fixed = asked.get("num_bits") == 8 and asked.get("type") == "float" and not asked.get("dynamic")
        return "fp8" if fixed else ""
    return "fp8" if str(asked).lower() == "fp8" else ""


def _algorithm(name: str, config: Mapping[str, Any]) -> Format:
    upper = name.upper()
    if "NVFP4" in upper or not upper:
        return Format("nvfp4", 4)
    if "FP8" in upper:
        return Format("fp8", 8, block=128 if "BLOCK" in upper or "PB" in upper else 0)
    if "W4" in upper or "AWQ" in upper:
        return Format("int4", 4, int(config.get("group_size") or _GROUP))
    raise UnknownQuantization(f"ModelOpt algorithm '{name}'")


def _dynamic_exclusions(config: Mapping[str, Any]) -> tuple[str, ...]:
    """GPTQModel's `dynamic`: keys with prefix `-:` are patterns of modules that are not quantized."""
    return tuple(f"re:{key[2:]}" for key in (config.get("dynamic") or {}) if str(key).startswith("-:"))


def _texts(*lists: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(text) for items in lists for text in items or ()))
