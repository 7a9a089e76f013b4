"""Our command lines are valid for the real `vllm serve`: the installed release's parser checks every one.

The pod's image is newer than the newest release with a CPU wheel; the differences are listed below, one by
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from modelyard.engines import (
    ServeSettings,
    check_flags,
    newest_release,
    parsers_for,
    server_args,
    server_env,
)
from modelyard.engines.release import Flag
from modelyard.engines.vllm import Vllm
from modelyard.objects.pods.ports import PORT
from modelyard.objects.serving.pod import server_pod
from modelyard.objects.serving.settings import serve_settings
from modelyard.objects.serving.weights import weights_path
from modelyard.planning import ModelPlan, plan
from modelyard.spec import load_catalogue, load_environment
from tests.engine.installed import ROOT, require
from tests.engine.real_parser import PATH, Refused, ServeParser, json_type
from tests.engine.vllm_table import installed_table
from tests.engine.vllm_table import written as table_text
from tests.unit.given import a_model, a_plan, an_environment

require()

DATA = ROOT / "constructs" / "modelyard" / "engines" / "vllm"
RELEASE = newest_release("vllm")  # 0.33.0; installed is 0.32.0
# 0.33.0 against 0.32.0: flags that came, and choices that came and went.
NEW_FLAGS = {"monokernel", "reasoning-effort-map", "sleep-mode-backend", "watchdog-config"}
NEW_CHOICES = {
    "gdn-prefill-backend": {"sycl"},
    "moe-backend": {"aiter_triton_mxfp4_mxfp4"},
    "spec-method": {"step5_mtp"},
}
GONE_CHOICES = {"spec-method": {"medusa", "mlp_speculator"}}
FREED_CHOICES = {"kv-cache-dtype"}  # plugins may bring further ones, so 0.33.0 does not list them
NEW_TOOL_PARSERS = {"beam", "muse", "musespark1x", "step5"}
NEW_REASONING_PARSERS = {"beam", "muse", "musespark1x", "step5"}
# `vllm serve` has `--model`, but warns that it will go; ours comes first, without a flag.
OURS_ALONE_WITHOUT = {"help", "model"}

EVERYTHING = a_model(
    name="everything",
    model={
        "uri": "hf://Qwen/Qwen3-8B",
        "revision": "b" * 40,
        "servedNames": ["chat", "chat-large"],
        "trustRemoteCode": {"reason": "a test of the flag"},
    },
    accelerator="l40s:2",
    engine={
        "maxModelLen": 16384,
        "maxNumSeqs": 64,
        "maxNumBatchedTokens": 4096,
        "gpuMemoryUtilization": 0.85,
        "dtype": "float16",
        "kvCacheDtype": "fp8",
        "enforceEager": True,
        "args": {"seed": 7, "enable-chunked-prefill": False, "generation-config": "vllm"},
    },
    features={"tools": True, "reasoning": True, "prefixCaching": False},
    adapters=[
        {"name": "legal", "uri": "hf://acme/legal", "rank": 64},
        {"name": "medical", "uri": "hf://acme/medical"},
    ],
    speculativeDecoding={"tokens": 3},
    drain=90,
)


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeParser]:
    real = ServeParser(tmp_path_factory.mktemp("home"))
    yield real
    real.close()


@cache
def shipped() -> dict[str, ModelPlan]:
    """Every model of `models/` that runs on GPUs, in every environment, by `ENVIRONMENT/MODEL`."""
    catalogue, _ = load_catalogue(ROOT / "models")
    plans = {}
    for path in sorted((ROOT / "environments").glob("*.yaml")):
        environment, source, _ = load_environment(path)
        assert environment, path
        for planned in plan(catalogue, environment, source=source).models:
            if planned.serving.release.engine == "vllm":
                plans[f"{path.stem}/{planned.name}"] = planned
    return plans


def everything() -> ModelPlan:
    [planned] = a_plan(EVERYTHING).models
    return planned


def arguments_of(planned: ModelPlan) -> tuple[str, ...]:
    return server_args(serve_settings(planned), planned.serving.release)


def decided(planned: ModelPlan) -> dict[str, object]:
    """The plan in the names of vLLM's parser; what it does not name must stay at vLLM's default."""
    model, serving = planned.model, planned.serving
    values: dict[str, object] = {
        "model_tag": weights_path(model.model.uri, model.model.revision),
        "served_model_name": list(model.model.served_names) or [model.name, model.model.repository],
        "host": "0.0.0.0",
        "port": PORT,
        "tensor_parallel_size": serving.tensor_parallel,
        "max_model_len": serving.max_model_len,
        "max_num_seqs": serving.max_num_seqs,
        "max_num_batched_tokens": serving.max_num_batched_tokens,
        "gpu_memory_utilization": model.engine.gpu_memory_utilization,
        "dtype": serving.dtype,
        "kv_cache_dtype": model.engine.kv_cache_dtype,
        "enforce_eager": model.engine.enforce_eager,
        "enable_prefix_caching": model.features.prefix_caching,
        "enable_auto_tool_choice": model.features.tools,
        "tool_call_parser": planned.parsers.tools if model.features.tools else None,
        "reasoning_parser": planned.parsers.reasoning if model.features.reasoning else "",
        "safetensors_load_strategy": planned.load_strategy,
        "shutdown_timeout": model.drain,
        "disable_access_log_for_endpoints": "/health,/metrics",
        "trust_remote_code": model.model.trust_remote_code is not None,
    }
    if serving.arch.multimodal:
        values["limit_mm_per_prompt"] = {"image": 1, "video": 0}
    return values


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_model_gets_exactly_what_its_plan_says(parser: ServeParser, name: str) -> None:
    planned = shipped()[name]

    parsed = parser(*arguments_of(planned))

    assert parsed == {**known(parser()), **decided(planned)}


def test_a_model_that_uses_every_field_gets_exactly_what_its_plan_says(parser: ServeParser) -> None:
    planned = everything()

    parsed = known(parser(*arguments_of(planned)))

    adapters = parsed.pop("lora_modules")
    assert [(adapter["name"], adapter["path"]) for adapter in adapters] == [
        ("legal", weights_path("hf://acme/legal", "main")),
        ("medical", weights_path("hf://acme/medical", "main")),
    ]
    own = {
        "enable_lora": True,
        "max_loras": 2,
        "max_lora_rank": 64,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4},
        "seed": 7,
        "enable_chunked_prefill": False,
        "generation_config": "vllm",
    }
    defaults = known(parser())
    del defaults["lora_modules"]
    assert parsed == {**defaults, **decided(planned), **own}


# What LeaderWorkerSet puts into every pod's environment, for the kubelet to fill in.
GROUP = {"$(LWS_WORKER_INDEX)": "1", "$(LWS_LEADER_ADDRESS)": "leader.example"}


@cache
def of_every_kind() -> dict[str, ModelPlan]:
    """The fixtures that vLLM serves: experts, drafts, adapters, several nodes, prefill and decode apart,
    batches."""
    base = ROOT / "tests" / "fixtures" / "serving"
    catalogue, _ = load_catalogue(base / "models")
    environment, source, _ = load_environment(base / "environments" / "serving.yaml")
    assert environment
    plans = plan(catalogue, environment, source=source).models
    return {planned.name: planned for planned in plans if planned.serving.release.engine == "vllm"}


def filled_in(arguments: Iterable[str]) -> list[str]:
    filled = []
    for argument in arguments:
        for variable, value in GROUP.items():
            argument = argument.replace(variable, value)
        filled.append(argument)
    return filled


@pytest.mark.parametrize("name", [name for name, p in of_every_kind().items() if not p.model.batch])
def test_every_kind_of_endpoint_is_accepted(parser: ServeParser, name: str) -> None:
    planned = of_every_kind()[name]
    flags = [a.removeprefix("--").partition("=")[0] for a in arguments_of(planned) if a.startswith("--")]

    answer = parser(*filled_in(arguments_of(planned)))

    assert isinstance(answer, dict), answer
    assert answer["model_tag"] == serve_settings(planned).model_path
    assert set(flags) <= set(parser.options)


@pytest.mark.parametrize("name", [name for name, p in of_every_kind().items() if p.serving.nodes > 1])
def test_the_workers_of_a_group_are_accepted(parser: ServeParser, name: str) -> None:
    planned = of_every_kind()[name]

    answer = parser(*filled_in(Vllm().worker_args(serve_settings(planned), planned.serving.release)))

    assert isinstance(answer, dict), answer
    assert answer["headless"] is True


@pytest.mark.parametrize("name", [name for name, p in of_every_kind().items() if p.model.batch])
def test_the_arguments_of_a_batch_are_accepted(parser: ServeParser, name: str) -> None:
    planned = of_every_kind()[name]
    arguments = Vllm().batch_args(
        serve_settings(planned), planned.serving.release, requests="in.jsonl", answers="out.jsonl"
    )

    answer = parser("run-batch", *arguments)

    assert isinstance(answer, dict), answer
    assert answer["model"] == serve_settings(planned).model_path


def test_kinds_of_endpoint_differ_in_what_they_say() -> None:
    """Each of these stands in some fixture's arguments: a fixture that loses its purpose is noticed."""
    said = {argument.partition("=")[0] for p in of_every_kind().values() for argument in arguments_of(p)}

    assert {
        *("--runner", "--convert", "--quantization", "--kv-transfer-config", "--speculative-config"),
        *("--enable-lora", "--pipeline-parallel-size", "--data-parallel-size", "--enable-expert-parallel"),
        *("--nnodes", "--load-format", "--limit-mm-per-prompt", "--structured-outputs-config"),
        "--enable-sleep-mode",
    } <= said


@pytest.mark.parametrize("name", [*shipped(), "everything"])
def test_flags_are_written_in_full(parser: ServeParser, name: str) -> None:
    """The parser completes abbreviations in silence: acceptance alone would not show one."""
    flags = [arg for arg in arguments_of(shipped().get(name) or everything()) if arg.startswith("--")]

    assert [arg for arg in flags if arg.removeprefix("--").partition("=")[0] not in parser.options] == []
    assert parser.value("max-num-seqs", "--max-num-se=9") == 9


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--max-modell-len=8192"], "unrecognized arguments"),
        (["--gpu-memory-utilisation=0.9"], "unrecognized arguments"),
        (["--dtype=int3"], "invalid choice"),
        (["--max-num-seqs=many"], "--max-num-seqs"),
        (["--max-num-seqs"], "expected one argument"),
        (["--enforce-eager=true"], "ignored explicit argument"),
        (["--safetensors-load-strategy=fast"], "invalid choice"),
        (["--max-lora-rank=24"], "invalid choice"),
        (["--lora-modules", "legal"], "Invalid JSON"),
        (["--speculative-config={tokens: 5}"], "cannot be converted"),
        (['--compilation-config={"level":3,"modes":1}'], "unexpected_keyword_argument"),
        (["--enable-auto-tool-choice"], "requires --tool-call-parser"),
    ],
)
def test_a_planted_mistake_is_refused(parser: ServeParser, arguments: list[str], why: str) -> None:
    answer = parser(PATH, *arguments)

    assert isinstance(answer, Refused)
    assert why in answer.why


@pytest.mark.parametrize("gone", RELEASE.removed)
@pytest.mark.parametrize("form", ["--{}", "--{}=1"])
def test_a_flag_of_the_removed_table_is_unknown_to_the_parser(
    parser: ServeParser, gone: str, form: str
) -> None:
    answer = parser(PATH, form.format(gone))

    assert isinstance(answer, Refused)
    assert f"unrecognized arguments: --{gone}" in answer.why or f"ambiguous option: --{gone}" in answer.why


def test_the_table_of_the_installed_release_is_what_the_parser_says() -> None:
    """`make engine-table` writes it; nothing in it was typed."""
    table = installed_table()

    shipped_text = (DATA / "releases" / f"{table['version']}.json").read_text(encoding="utf-8")
    assert table_text(table) == shipped_text


def test_the_table_has_the_parsers_flags(parser: ServeParser) -> None:
    table = {flag.name for flag in RELEASE.flags.values()}
    real = {name for name in parser.options if not name.startswith("no-")}

    assert table - real == NEW_FLAGS
    assert real - set(RELEASE.flags) == OURS_ALONE_WITHOUT


def shared_flags() -> list[Flag]:
    """Flags of the table under their own names, without the ones that only the newer release has."""
    return [flag for name, flag in RELEASE.flags.items() if name == flag.name and name not in NEW_FLAGS]


@pytest.mark.parametrize("flag", shared_flags(), ids=lambda flag: flag.name)
def test_type_and_choices_of_the_table_are_the_parsers(parser: ServeParser, flag: Flag) -> None:
    real = parser.options[flag.name]

    found = json_type(parser, flag.name)

    assert flag.type == found
    assert flag.many == real["many"]
    assert flag.only_on == (found == "boolean" and f"no-{flag.name}" not in parser.options)
    if flag.name not in FREED_CHOICES:
        choices = set(real["choices"] or ()) - GONE_CHOICES.get(flag.name, set())
        assert set(flag.choices) == choices | NEW_CHOICES.get(flag.name, set())


# A value of each type that our check lets pass.
SAMPLES: dict[str, Any] = {
    "boolean": True,
    "integer": 8,
    "number": 0.5,
    "string": "text",
    "object": {},
    "any": {"a": 1},
}


def written(flag: str, value: Any) -> tuple[str, ...]:
    """What a model with `engine.args: {flag: value}` adds to the command line."""
    plain = ServeSettings(PATH, ("x",), 8192, 256, 2048, 0.9)
    return server_args(replace(plain, extra={flag: value}), RELEASE)[len(server_args(plain, RELEASE)) :]


def free_flags() -> list[Flag]:
    """Flags that a model may set itself."""
    return [flag for flag in shared_flags() if flag.name not in RELEASE.owned]


@pytest.mark.parametrize("flag", free_flags(), ids=lambda flag: flag.name)
def test_a_value_of_the_tables_type_arrives_as_it_was_given(parser: ServeParser, flag: Flag) -> None:
    choices = set(flag.choices) - NEW_CHOICES.get(flag.name, set())
    for sample in sorted(choices) or [SAMPLES[flag.type]]:
        value = [sample] if flag.many else sample
        assert check_flags({flag.name: value}, RELEASE) == []

        arrived = parser.value(flag.name, *written(flag.name, value))

        if flag.type == "object":  # becomes a configuration of vLLM's own
            assert not isinstance(arrived, Refused)
        else:
            assert arrived in (value, [value])  # some texts are lists with commas


@pytest.mark.parametrize("flag", [f for f in free_flags() if f.type == "boolean"], ids=lambda flag: flag.name)
def test_false_switches_a_flag_off_or_is_caught_by_our_check(parser: ServeParser, flag: Flag) -> None:
    arrived = parser.value(flag.name, *written(flag.name, False))

    assert arrived is False or check_flags({flag.name: False}, RELEASE)


@pytest.mark.parametrize("name", ["no-enable-chunked-prefill", "disable-chunked-prefill"])
def test_a_false_negation_switches_on_or_is_caught_by_our_check(parser: ServeParser, name: str) -> None:
    arrived = parser.value("enable-chunked-prefill", *written(name, False))

    assert arrived is True or check_flags({name: False}, RELEASE)


@pytest.mark.parametrize("flag", ["allowed-headers", "allowed-methods", "allowed-origins"])
def test_a_list_arrives_whole_or_is_caught_by_our_check(parser: ServeParser, flag: str) -> None:
    value = ["one", "two"]

    arrived = parser.value(flag, *written(flag, value))

    assert arrived == value or check_flags({flag: value}, RELEASE)


def test_a_file_of_arguments_is_read_or_caught_by_our_check(parser: ServeParser, tmp_path: Path) -> None:
    file = tmp_path / "arguments.yaml"
    file.write_text("seed: 7\n")

    arrived = parser.value("seed", *written("config", str(file)))

    assert arrived == 7 or check_flags({"config": str(file)}, RELEASE)


def test_the_parsers_of_models_are_ones_that_the_engine_has(parser: ServeParser) -> None:
    chosen = [parsers_for(name, facts.model_type) for name, facts in architectures().items()]

    assert {p.tools for p in chosen if p.tools} <= set(parser.facts["tool_parsers"])
    assert {p.reasoning for p in chosen if p.reasoning} <= set(parser.facts["reasoning_parsers"])
    assert RELEASE.tool_parsers - set(parser.facts["tool_parsers"]) == NEW_TOOL_PARSERS
    assert RELEASE.reasoning_parsers - set(parser.facts["reasoning_parsers"]) == NEW_REASONING_PARSERS


def test_every_variable_of_the_pod_is_one_that_the_engine_reads(parser: ServeParser) -> None:
    """Unknown ones cost a warning at start, and do nothing."""
    pod = server_pod(
        everything(), environment=an_environment(), priority_class="x", settled=False, account="x"
    )
    names = {variable["name"] for variable in pod["spec"]["containers"][0]["env"]}
    ours = {name for name in names | set(server_env(serve_settings(everything()), RELEASE)) if "VLLM" in name}

    assert ours
    assert ours <= set(parser.facts["variables"])
    # Named in place of a flag that is gone.
    assert "VLLM_HTTP_TIMEOUT_KEEP_ALIVE" in parser.facts["variables"]


def known(answer: dict[str, Any] | Refused) -> dict[str, Any]:
    assert not isinstance(answer, Refused), answer
    return answer
