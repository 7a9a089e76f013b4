"""The CLI's conventions: exit codes, streams, machine-readable output, colours and help."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from modelyard.findings import CHECKS
from tests.unit.given import Modelyard

BROKEN = ["validate", "tests/fixtures/ten_mistakes.yaml", "--environments", "tests/fixtures/environments"]


def words(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


COMMANDS = [
    *("validate", "plan", "checklist", "render", "explain", "estimate", "size", "catalog", "schema"),
    *("doctor", "secrets", "destroy-plan", "drain", "sweep", "publish", "upgrade-plan"),
    "verify",
]


@pytest.mark.parametrize("args", [[], ["secrets"]], ids=words)
def test_a_group_without_a_command_shows_its_help(modelyard: Modelyard, args: list[str]) -> None:
    answer = modelyard(*args)

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"Usage: {' '.join(['modelyard', *args])} [OPTIONS] COMMAND")
    assert answer.out.count("Usage:") == 1


def test_a_mistyped_command_is_suggested(modelyard: Modelyard) -> None:
    assert modelyard("validat").err.startswith(
        "modelyard: No such command 'validat'. Did you mean 'validate'?"
    )


@pytest.mark.parametrize("args", [["--no-color", "catalog", "models"], ["catalog", "models", "--no-color"]])
def test_colours_can_be_switched_off_before_and_after_the_command(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "")

    assert "\x1b" in modelyard("catalog", "models").out
    assert "\x1b" not in modelyard(*args).out


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--version"], 0),
        (["plan", "--env", "prod"], 0),
        (["explain", "KV001"], 0),
        (["explain", "kv001"], 0),
        (["explain", "qwen3-32b-fp8", "--env", "prod"], 0),
        (["catalog", "instances", "--env", "prod"], 0),
        (["schema"], 0),
        (BROKEN, 1),
        (["plan", "--env", "nowhere"], 1),
        (["explain", "qwen3-32b-fp8", "--env", "nowhere"], 1),
        (["plan", "--models", "nowhere"], 1),
        (["nonsense"], 64),
        (["plan", "--nonsense"], 64),
        (["plan", "--output", "xml"], 64),
        (["explain"], 64),
        (["explain", "no-such-model"], 64),
        (["catalog", "nonsense"], 64),
        (["catalog", "instances", "--env", "nowhere"], 64),
        (["schema", "--env", "nowhere"], 64),
    ],
    ids=words,
)
def test_the_exit_code_tells_findings_from_misuse(modelyard: Modelyard, args: list[str], code: int) -> None:
    answer = modelyard(*args)

    assert answer.code == code
    assert answer.err or code == 0
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (BROKEN, "Validation"),
        (["plan", "--env", "prod"], "Plan"),
        (["plan", "--env", "nowhere"], "Plan"),
        (["explain", "qwen3-32b-fp8", "--env", "prod"], "Explanation"),
        (["explain", "KV001"], "Check"),
        (["size", "qwen3-32b-fp8"], "Sizing"),
        (["size", "qwen3-32b-fp8", "--length", "1000000"], "Sizing"),
        (["catalog", "instances"], "Catalog"),
        (["catalog", "models"], "Catalog"),
        (["catalog", "engines"], "Catalog"),
        (["schema"], "Schemas"),
    ],
    ids=words,
)
def test_json_says_what_it_is_and_is_all_there_is_on_standard_output(
    modelyard: Modelyard, args: list[str], kind: str
) -> None:
    document = json.loads(modelyard(*args, "--output", "json").out)

    assert (document["schemaVersion"], document["kind"]) == (1, kind)


def test_the_plan_as_data_has_what_programs_ask_for(modelyard: Modelyard) -> None:
    document = json.loads(modelyard("plan", "--env", "prod", "-o", "json").out)

    assert document["deployable"] is True
    assert document["findings"] == []
    assert document["cost"]["unpriced"] == ["qwen3-8b-trn2"]
    assert document["cost"]["floorUsdPerHour"] < document["cost"]["ceilingUsdPerHour"]
    model = next(m for m in document["models"] if m["name"] == "qwen3-32b-fp8")
    assert {"accelerator", "instanceTypes", "maxModelLen", "memoryGiB", "rollout", "startup"} <= set(model)


def test_findings_go_to_standard_error_and_data_to_standard_output(modelyard: Modelyard) -> None:
    planned = modelyard("plan", "--env", "dev")
    refused = modelyard(*BROKEN)

    assert "qwen3-32b-fp8" in planned.out
    assert "CAP004 warning" in planned.err
    assert "CAP004" not in planned.out
    assert "KV001 error" in refused.err
    assert "KV001" not in refused.out


@pytest.mark.parametrize(
    "args", [["plan", "--env", "dev"], BROKEN, ["explain", "KV001"], ["size", "qwen3-32b-fp8"]], ids=words
)
def test_no_color_means_no_escape_codes(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """Even where somebody forces colours, and bold counts as one."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = modelyard(*args)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = modelyard(*args)

    assert "\x1b" in coloured.out + coloured.err
    assert "\x1b" not in plain.out + plain.err


def test_a_pipe_gets_whole_words(modelyard: Modelyard) -> None:
    answer = modelyard("plan", "--env", "prod")

    assert "p5.48xlarge" in answer.out
    assert "\x1b" not in answer.out + answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(modelyard: Modelyard, command: str) -> None:
    answer = modelyard(command, "--help")

    assert answer.code == 0
    assert f"  modelyard {command} " in answer.out


def test_help_names_every_command(modelyard: Modelyard) -> None:
    assert all(f"  {command} " in modelyard("--help").out for command in COMMANDS)


@pytest.mark.parametrize("code", ["KV001", "CAP004"])
def test_a_code_is_explained_with_its_way_out(modelyard: Modelyard, code: str) -> None:
    answer = modelyard("explain", code)

    assert answer.out.startswith(f"{code} (")
    assert f"Fix: {CHECKS[code].fix}" in answer.out


def test_schemas_are_written_where_asked(modelyard: Modelyard, tmp_path: Path) -> None:
    modelyard("schema", "--write", str(tmp_path / "schemas"), "--env", "prod")

    written = sorted((tmp_path / "schemas").iterdir())
    assert [path.name for path in written] == [
        "environment.schema.json",
        "model.schema.json",
        "pipeline.schema.json",
        "project.schema.json",
    ]
    assert "g6e" in json.loads(written[1].read_text())["properties"]["pool"]["enum"]


def test_the_environment_may_come_from_a_variable(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELYARD_ENV", "staging")

    assert json.loads(modelyard("plan", "-o", "json").out)["environment"] == "staging"


SERVING = (
    *("--env", "serving"),
    *("--models", "tests/fixtures/serving/models"),
    *("--environments", "tests/fixtures/serving/environments"),
)


def explained(modelyard: Modelyard, model: str, *more: str) -> str:
    answer = modelyard("explain", model, *SERVING, *more)
    assert answer.code == 0, answer.err
    return answer.out


def test_a_model_on_cpus_is_explained_in_the_words_of_cpus(modelyard: Modelyard) -> None:
    text = explained(modelyard, "chat-cpu")

    assert "memory of a replica" in text
    assert "has 4 of 16 vCPU" in text
    assert "server-b11434" in text
    assert not re.search(r"NeuronCore|GPU|cuda|16 cpu|accelerators where", text)


def test_an_encoder_has_no_cache_and_is_paid_by_the_tokens_that_it_reads(modelyard: Modelyard) -> None:
    text = explained(modelyard, "embeddings-gpu")

    assert "not used: an encoder keeps none" in text
    assert re.search(r"throughput +at most [\d,]+ requests/s a replica", text)
    assert re.search(r"tokens +at least \$\d+\.\d+ per 1M tokens, at full load", text)
    assert not re.search(r"one full request|output tokens|fit at once", text)


def test_several_pods_of_a_replica_and_stages_are_said(modelyard: Modelyard) -> None:
    text = explained(modelyard, "two-nodes")

    assert "split over 8, in 2 pipeline stages" in text
    assert "2 such pods, on a node each, are one replica" in text


def test_passed_checks_are_counted_and_listed_where_asked_for(modelyard: Modelyard) -> None:
    assert f"checks           {len(CHECKS)} of {len(CHECKS)} found nothing; --checks lists them" in explained(
        modelyard, "moe"
    )
    assert "found nothing: AMI001, AVAIL001, " in explained(modelyard, "moe", "--checks")


def test_the_start_up_budget_says_from_when_it_counts(modelyard: Modelyard) -> None:
    assert "for weights and compilation, from the start of the container" in explained(modelyard, "two-nodes")


def test_a_plan_says_whom_it_leaves_out(modelyard: Modelyard, tmp_path: Path) -> None:
    lines = "model: hf://Qwen/Qwen3-8B\naccelerator: l40s\nreplicas: 2\n"
    (tmp_path / "good.yaml").write_text(lines, encoding="utf-8")
    (tmp_path / "large.yaml").write_text(lines.replace("Qwen3-8B", "Qwen3-235B-A22B"), encoding="utf-8")

    answer = modelyard("plan", "--env", "prod", "--models", str(tmp_path))

    assert answer.code == 1
    assert "Neither in the table nor in the sums, for the errors below: large." in answer.out


@pytest.mark.parametrize(("typed", "meant"), [("two-node", "two-nodes"), ("kv01", "KV001")])
def test_a_mistyped_model_or_code_is_suggested(modelyard: Modelyard, typed: str, meant: str) -> None:
    answer = modelyard("explain", typed, *SERVING)

    assert answer.code == 64
    assert answer.err.startswith(f"modelyard: no model or code '{typed}'; did you mean '{meant}'?")
