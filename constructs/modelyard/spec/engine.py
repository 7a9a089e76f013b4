"""The engine with its features, and the accelerators of a model."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from modelyard.engines.registry import backends, file_names
from modelyard.secret_values import shown
from modelyard.spec.choices import one_of
from modelyard.spec.document import (
    DNS_LABEL,
    Document,
)

NO_ACCELERATOR = "none"
"""The value of `accelerator` in a model file for serving on CPUs."""
# Set by the server's pod, or read by vLLM in an unexpected way (VLLM_PORT is not the API's port).
_RESERVED_ENV = re.compile(
    r"HOME|USER|TMPDIR|XDG_.*|HF_.*|HUGGING_FACE_HUB_TOKEN|VLLM_(PORT|HOST_IP|API_KEY|CACHE_ROOT)"
    r"|TRITON_CACHE_DIR|TORCHINDUCTOR_CACHE_DIR|FLASHINFER_WORKSPACE_BASE"
)

LEAST_MAX_MODEL_LEN = 256
"""Minimum `maxModelLen`, in tokens, in a file and in a proposed fix."""


class ModelAccelerator(Document):
    """Accelerators of one replica."""

    type: Annotated[str, Field(pattern=DNS_LABEL)]
    """Accelerator name such as l40s, h100 or trn2, `auto` for the cheapest that fits, or `none` for CPUs."""
    count: Annotated[int, Field(ge=1, le=64)] | None = None
    """Accelerators per replica, or vCPU for `none`; default 1 (8 vCPU), or chosen by `auto`. More than a node
    has are spread over nodes."""


class ParallelismSettings(Document):
    """Overrides how a replica is split: tensor × pipeline × data is the number of accelerators."""

    tensor: Annotated[int, Field(ge=1, le=64)] | None = None
    """Tensor-parallel size: slices of every layer; default: all accelerators of a node."""
    pipeline: Annotated[int, Field(ge=1, le=16)] | None = None
    """Pipeline-parallel size: groups of layers; default: one per node."""
    data: Annotated[int, Field(ge=1, le=64)] = 1
    """Data-parallel size: copies of attention that share the experts of a mixture-of-experts model."""
    expert: bool = False
    """Expert parallelism: whole experts per rank instead of slices of all."""


_NAMES = one_of(lambda: ("auto", *file_names()), lambda value: value == "auto" or value in file_names())
_BACKENDS = one_of(backends, lambda value: value in backends())


class EngineSettings(Document):
    """The inference engine, and overrides of the settings that the plan derives."""

    name: Annotated[str, *_NAMES] = "auto"
    """`auto`: vLLM on NVIDIA GPUs, vLLM Neuron on Trainium, llama-server for GGUF and on CPUs."""
    backend: Annotated[str, *_BACKENDS] | None = None
    """Backend of `triton`; default vllm."""
    version: Annotated[str, Field(pattern=r"^([0-9]+\.[0-9]+(\.[0-9]+)?|b[0-9]+)$")] | None = None
    """Engine release; default: the newest that Modelyard knows."""
    max_model_len: Annotated[int, Field(ge=LEAST_MAX_MODEL_LEN)] | None = None
    """Longest prompt plus answer, in tokens; default: the longest that fits, up to the model's own limit."""
    concurrency: Annotated[int, Field(ge=1)] = 1
    """Full-length requests that must fit into the KV cache at once."""
    max_num_seqs: Annotated[int, Field(ge=1)] | None = None
    """Maximum sequences in a batch; default: the engine's."""
    max_num_batched_tokens: Annotated[int, Field(ge=256)] | None = None
    """Maximum tokens in a batch; default: the engine's."""
    gpu_memory_utilization: Annotated[float, Field(ge=0.3, le=0.95)] = 0.9
    """Share of the accelerator's memory for weights, activations and KV cache."""
    dtype: Literal["auto", "bfloat16", "float16"] = "auto"
    """Number format of unquantized weights; `auto`: the checkpoint's."""
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    """`fp8` halves the KV cache; `auto`: 16 bit, or fp8 where the checkpoint asks for it."""
    quantization: Literal["auto", "fp8", "int8"] = "auto"
    """Quantize a 16-bit checkpoint at load; `auto` uses the checkpoint as it is (fp8, awq, gptq, int8, mxfp4,
    …)."""
    gpu_layers: Annotated[int, Field(ge=0)] | None = None
    """llama-server: layers on the GPU; default: as many as fit."""
    enforce_eager: bool = False
    """Run without CUDA graphs: slower, less memory."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Extra engine flags in kebab-case, without leading dashes; checked against the release's flag table."""
    env: dict[Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")], str] = Field(default_factory=dict)
    """Environment variables of the server."""

    @field_validator("env")
    @classmethod
    def _not_the_pods_own(cls, value: dict[str, str]) -> dict[str, str]:
        taken = [name for name in value if _RESERVED_ENV.fullmatch(name)]
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here: the server's pod needs it for itself")
        return value

    @field_validator("args")
    @classmethod
    def _kebab_case(cls, value: dict[str, Any]) -> dict[str, Any]:
        wrong = [key for key in value if key.startswith("-") or "_" in key]
        if wrong:
            raise ValueError(
                f"flags are written without dashes in front and in kebab-case, got {', '.join(map(shown, wrong))}"
            )
        return value


class KvOffload(Document):
    """A second tier of the KV cache."""

    size_gib: Annotated[int, Field(ge=1, le=4096)]
    """GiB of host memory, for all GPUs of a replica together."""
    backend: Literal["native", "lmcache"] = "native"
    """`lmcache` uses LMCache's local CPU store; it is not shared between replicas either."""


_SIZE = re.compile(r"^([0-9]+)Gi$")


def _parse_kv_offload(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not (match := _SIZE.match(value)):
        raise ValueError(f"must be a size in GiB such as 64Gi, got {shown(value)}")
    return {"sizeGib": int(match[1])}


class Features(Document):
    """Features of the endpoint beyond plain completion."""

    tools: bool = False
    """Tool calls, with the parser for the model's family."""
    reasoning: bool = False
    """Reasoning separate from the answer, with the parser for the model's family."""
    prefix_caching: bool = True
    """Reuse the KV cache of shared prompt prefixes."""
    images_per_prompt: Annotated[int, Field(ge=0, le=64)] | None = None
    """Maximum images per prompt of a vision model; default 1."""
    videos_per_prompt: Annotated[int, Field(ge=0, le=16)] | None = None
    """Maximum videos per prompt of a vision model; default 0."""
    structured_outputs: Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"] = "auto"
    """Grammar backend for JSON schemas and regular expressions; with `auto` the engine chooses per
    request."""
    kv_offload: Annotated[
        KvOffload | None, BeforeValidator(_parse_kv_offload, json_schema_input_type=KvOffload | str | None)
    ] = None
    """Offload KV blocks from the GPU to host memory; short form: a size such as `64Gi`."""
    sleep: bool = False
    """vLLM's sleep mode: opens unauthenticated endpoints that free the GPU's memory; not allowed in a strict
    environment."""


def parse_engine(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def parse_accelerator(value: object) -> object:
    if not isinstance(value, str):
        return value
    name, colon, count = value.partition(":")
    if colon and not count.isdigit():
        raise ValueError(f"must be NAME or NAME:COUNT such as l40s:4, got {shown(value)}")
    return {"type": name, "count": int(count)} if colon else {"type": name}
