"""Engine releases: current flags, removed flags, and the resulting command line."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from modelyard.checkpoints import architectures
from modelyard.engines import (
    Ranks,
    ServeSettings,
    check_flags,
    newest_release,
    parsers_for,
    release,
    releases,
    server_args,
    server_env,
)
from modelyard.hardware import accelerators
from modelyard.memory.capability import engine_findings
from modelyard.spec import Model
from tests.unit.given import a_model, a_plan, codes

VLLM = newest_release("vllm")
PLAIN = ServeSettings(
    model_path="/models/x",
    served_names=("x", "org/x"),
    max_model_len=8192,
    max_num_seqs=256,
    max_num_batched_tokens=2048,
    gpu_memory_utilization=0.9,
)
EVERYTHING = replace(
    PLAIN,
    ranks=Ranks(tensor=4),
    dtype="float16",
    kv_cache_dtype="fp8",
    enforce_eager=True,
    prefix_caching=False,
    tool_parser="hermes",
    reasoning_parser="qwen3",
    images_per_prompt=2,
    adapters={"legal": "/models/legal"},
    max_lora_rank=32,
    speculative={"method": "ngram", "num_speculative_tokens": 5},
    trust_remote_code=True,
    extra={
        "seed": 1,
        "enable-log-requests": False,
        "disable-cascade-attn": True,
        "compilation-config": {"mode": 3},
    },
)


def flags_in(args: tuple[str, ...]) -> list[str]:
    return [arg.partition("=")[0] for arg in args if arg.startswith("--")]


def is_field(path: str) -> bool:
    """Whether `path` such as `engine.maxModelLen` names a field of the model file."""
    here: Any = Model
    for part in path.split("."):
        documents = [a for a in (here, *get_args(here)) if isinstance(a, type) and issubclass(a, BaseModel)]
        if not documents:
            return "dict" in str(here)
        fields = {info.alias: info for info in documents[0].model_fields.values()}
        if part not in fields:
            return False
        here = fields[part].annotation
        here = next((a for a in get_args(here) if isinstance(a, type) and issubclass(a, BaseModel)), here)
    return True


@pytest.mark.parametrize("settings", [PLAIN, EVERYTHING], ids=["plain", "everything"])
def test_every_written_flag_exists_in_the_release(settings: ServeSettings) -> None:
    for flag in flags_in(server_args(settings, VLLM)):
        name = flag.removeprefix("--")
        known = VLLM.flags.get(name) or VLLM.flags[name.removeprefix("no-")]
        assert known.type == "boolean" or not name.startswith("no-")


@pytest.mark.parametrize(
    ("extra", "written"),
    [
        ({"allowed-origins": ["a", "b"]}, ('--allowed-origins=["a","b"]',)),
        ({"allowed-media-domains": ["a", "b"]}, ("--allowed-media-domains", "a", "b")),
        ({"enable-chunked-prefill": False}, ("--no-enable-chunked-prefill",)),
    ],
)
def test_free_flags_are_written_as_the_parser_reads_them(
    extra: dict[str, Any], written: tuple[str, ...]
) -> None:
    assert server_args(replace(PLAIN, extra=extra), VLLM)[-len(written) :] == written


def test_no_flag_is_written_twice() -> None:
    flags = flags_in(server_args(EVERYTHING, VLLM))

    assert len(flags) == len(set(flags))


def test_the_model_comes_first_and_values_keep_their_json() -> None:
    args = server_args(EVERYTHING, VLLM)

    assert args[0] == "/models/x"
    [config] = [arg for arg in args if arg.startswith("--speculative-config=")]
    assert json.loads(config.partition("=")[2]) == {"method": "ngram", "num_speculative_tokens": 5}
    assert "--no-enable-log-requests" in args
    assert "--disable-cascade-attn" in args


@pytest.mark.parametrize("gone", VLLM.removed)
def test_a_removed_flag_names_what_replaces_it(gone: str) -> None:
    new = VLLM.removed[gone]

    [problem] = check_flags({gone: 1}, VLLM)

    assert problem.code == "VLLM001"
    assert problem.fix == (f"use {new} instead" if new else "remove it; nothing replaces it")
    assert gone not in VLLM.flags
    assert not new or new in VLLM.flags or is_field(new)


@pytest.mark.parametrize("owned", VLLM.owned)
def test_a_flag_of_the_plan_names_the_field_to_set(owned: str) -> None:
    field = VLLM.owned[owned]

    [problem] = check_flags({owned: "x"}, VLLM)

    assert problem.code == "VLLM002"
    assert owned == "model" or owned in VLLM.flags
    assert not field or (field in problem.fix and is_field(field))


@pytest.mark.parametrize(
    ("args", "fix"),
    [
        ({"block-sizes": 16}, "did you mean block-size?"),
        ({"zzz": 1}, "remove it, or choose a release that has it"),
        ({"block-size": "16"}, "correct the value"),
        ({"block-size": True}, "correct the value"),
        ({"no-block-size": True}, "correct the value"),
        ({"chat-template-content-format": "xml"}, "use one of auto, openai, string"),
        ({"no-enable-prefix-caching": True}, "set features.prefixCaching instead"),
        ({"disable-prefix-caching": True}, "set features.prefixCaching instead"),
        ({"device-memory-utilization": 0.5}, "set engine.gpuMemoryUtilization instead"),
        ({"aggregate-engine-logging": False}, "leave it out"),
        ({"disable-log-stats": True}, "remove it; Modelyard sets it"),
        ({"no-enable-chunked-prefill": False}, "write enable-chunked-prefill: true"),
        ({"config": "more.yaml"}, "remove it; Modelyard sets it"),
    ],
)
def test_a_wrong_flag_is_caught_before_the_gpu(args: dict[str, Any], fix: str) -> None:
    assert [problem.fix for problem in check_flags(args, VLLM)] == [fix]


@pytest.mark.parametrize(
    "args",
    [
        {"block-size": 16},
        {"seed": 7, "disable-cascade-attn": True},
        {"compilation-config": {"mode": 3}},
        {"compilation-config.mode": 3},
        {"allowed-media-domains": ["example.org", "example.com"]},
    ],
)
def test_a_right_flag_passes(args: dict[str, Any]) -> None:
    assert check_flags(args, VLLM) == []


def test_flags_that_cannot_be_checked_are_refused() -> None:
    neuron = a_model(
        model="hf://Qwen/Qwen3-8B", accelerator="trn2", engine={"maxModelLen": 8192, "args": {"seed": 1}}
    )

    assert "VLLM001" in codes(a_plan(neuron).findings)


@pytest.mark.parametrize("one", releases(), ids=lambda r: f"{r.engine}-{r.version}")
def test_a_release_is_pinned_and_complete(one: Any) -> None:
    assert one.version in one.image
    assert not one.image.endswith(":latest")
    assert one.architectures
    assert one.memory.block_size in (16, 32, 256)  # 256: llama.cpp pads a context to it
    assert one.health.startswith("/")
    assert one.tasks
    for accelerator in accelerators().values():
        batched, seqs = one.memory.batch_defaults(accelerator)
        assert batched >= seqs > 0


def test_an_unknown_release_is_none() -> None:
    assert release("vllm", "0.0.1") is None
    assert release("vllm") is VLLM


def test_parsers_are_ones_that_the_release_has() -> None:
    chosen = [parsers_for(name, arch.model_type) for name, arch in architectures().items()]

    assert {parsers.tools for parsers in chosen} - {None} <= VLLM.tool_parsers
    assert {parsers.reasoning for parsers in chosen} - {None} <= VLLM.reasoning_parsers


def test_a_known_model_is_served_or_refused_by_name() -> None:
    """The release dropped a class and two formats that the table has; their rows are for estimates of older
    ones."""
    refused: dict[tuple[str, str], set[str]] = {}
    for model_id in architectures().repositories():
        arch = architectures()[model_id]
        stored = arch.quantization.method if arch.quantization else ""
        task = "embed" if arch.encoder else "generate"
        asked = a_model(model=f"hf://{model_id}", task=task)
        for finding in engine_findings(asked, arch, accelerators()["h100"], VLLM):
            named = stored if stored and stored in finding.message else arch.architecture
            assert named in finding.message
            refused.setdefault((finding.code, named), set()).add(model_id)

    assert set(refused) == {
        ("ENG001", "MllamaForConditionalGeneration"),
        ("GPU001", "bitsandbytes"),
        ("GPU001", "fbgemm_fp8"),
    }
    assert refused["ENG001", "MllamaForConditionalGeneration"] == {
        "meta-llama/Llama-3.2-11B-Vision",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
        "meta-llama/Llama-3.2-90B-Vision-Instruct",
    }


def test_the_last_neuron_bucket_equals_the_batch_limits() -> None:
    args = server_args(PLAIN, newest_release("vllm-neuron"))

    [config] = [arg for arg in args if arg.startswith("--additional-config=")]
    neuron = json.loads(config.partition("=")[2])["neuron_config"]
    assert neuron["num_batched_tokens_buckets"][-1] == PLAIN.max_num_batched_tokens
    assert neuron["num_seqs_buckets"][-1] == PLAIN.max_num_seqs


def test_usage_statistics_are_off() -> None:
    vllm = [one for one in releases() if one.engine.startswith("vllm")]

    assert all(server_env(PLAIN, one)["VLLM_NO_USAGE_STATS"] == "1" for one in vllm)
