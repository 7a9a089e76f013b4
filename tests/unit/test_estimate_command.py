"""`modelyard estimate`: its documented format."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from modelyard.checkpoints import architectures
from modelyard.cli.answers import answer, answer_json
from modelyard.cli.ledger_bar import ledger_bar, ledger_json, ledger_parts
from modelyard.memory.estimate import estimate
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.question import LONGEST_LINE, read_question, read_questions
from tests.unit.given import ANSWER_KEYS as KEYS
from tests.unit.given import Modelyard

QWEN = ["--model", "Qwen/Qwen3-32B-FP8", "--accelerator", "l40s"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The folder of a checkpoint."""
    (tmp_path / "config.json").write_text(json.dumps(architectures().config("Qwen/Qwen3-8B")))
    return tmp_path


def asked(**changes: Any) -> dict[str, Any]:
    question = {"id": "q", "model": "Qwen/Qwen3-8B", "accelerator": "l40s", "maxModelLen": 8192}
    return {k: v for k, v in (question | changes).items() if v is not ...}


def said(**changes: Any) -> dict[str, Any]:
    return answer_json(answer(read_question(asked(**changes))))


def codes(found: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in found["findings"]]


def test_the_answer_is_one_line_with_the_keys_of_the_contract(modelyard: Modelyard, config: Path) -> None:
    args = (
        f"--config {config / 'config.json'} --accelerator-memory-gib 44.4 --compute-capability 8.9 --tensor-parallel 2 "
        "--pipeline-parallel 1 --data-parallel 1 --gpu-memory-utilization 0.9 --max-model-len 32768 --max-num-seqs 64 "
        "--max-num-batched-tokens 4096 --kv-cache-dtype fp8 --quantization awq --dtype bfloat16 --enforce-eager "
        "--engine vllm --engine-version 0.19.0 --output json"
    )
    result = modelyard("estimate", *args.split())

    assert result.out.count("\n") == 1
    found = json.loads(result.out)
    assert list(found) == KEYS
    assert found["fits"] is True
    assert found["cudaGraphGiB"] == 0
    assert result.code == 0


def test_a_folder_stands_for_its_config(modelyard: Modelyard, config: Path) -> None:
    by_file, by_folder = (
        modelyard("estimate", "--config", str(path), "--accelerator", "l40s", "-o", "json")
        for path in (config, config / "config.json")
    )

    assert by_file == by_folder


def test_options_and_a_line_of_a_batch_ask_the_same(modelyard: Modelyard, tmp_path: Path) -> None:
    line = {"model": "Qwen/Qwen3-32B-FP8", "accelerator": "l40s", "maxModelLen": 16384, "enforceEager": True}
    (tmp_path / "batch.jsonl").write_text(json.dumps(line))

    one = modelyard("estimate", *QWEN, "--max-model-len", "16384", "--enforce-eager", "--output", "json")
    batch = modelyard("estimate", "--batch", str(tmp_path / "batch.jsonl"), "--output", "json")

    assert one.out == batch.out


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([*QWEN, "--max-model-len", "8192"], 0),
        ([*QWEN, "--max-model-len", "8192", "--output", "json"], 0),
        (["--model", "Qwen/Qwen3-32B", "--accelerator", "l40s"], 1),
        (["--model", "acme/unknown", "--accelerator", "l40s"], 1),
        (["--model", "Qwen/Qwen3-8B", "--accelerator", "abacus"], 1),
        ([*QWEN, "--engine-version", "none"], 1),
        ([], 64),
        (["--model", "Qwen/Qwen3-8B"], 64),
        ([*QWEN, "--accelerator-memory-gib", "44"], 64),
        ([*QWEN, "--tensor-parallel", "0"], 64),
        ([*QWEN, "--gpu-memory-utilization", "nan"], 64),
        ([*QWEN, "--compute-capability", "ada"], 64),
        ([*QWEN, "--config", "nowhere"], 64),
        ([*QWEN, "--config", "docs"], 64),
        (["--config", "docs", "--accelerator", "l40s"], 64),
        (["--config", "config.json", "--hub"], 64),
        (["--batch", "nowhere.jsonl"], 64),
        (["--batch", "docs"], 64),
        (["--batch", "-", "--tensor-parallel", "2"], 64),
    ],
    ids=str,
)
def test_the_exit_code_says_whether_it_fits_or_was_misused(
    modelyard: Modelyard, args: list[str], code: int
) -> None:
    result = modelyard("estimate", *args)

    assert result.code == code
    assert "Traceback" not in result.err


@pytest.mark.parametrize("text", ["{", "[]", '"config"', "\x00", '{"architectures": 1}'])
def test_a_config_that_is_none_is_answered_with_a_finding(
    modelyard: Modelyard, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    result = modelyard("estimate", "--config", str(tmp_path), "--accelerator", "l40s", "-o", "json")

    found = json.loads(result.out)
    assert list(found) == KEYS
    assert codes(found) in (["YAML001"], ["MODEL002"])
    assert result.code == 1


BATCH = [
    (b'{"id": 1, "model": "Qwen/Qwen3-8B", "accelerator": "l40s"}', 1, None),
    (b'{"id": "no", "model": "Qwen/Qwen3-8B", "accelerator": "abacus"}', "no", "HW001"),
    (b'{"id": 2, "model": "Qwen/Qwen3-8B"', None, "YAML001"),
    (b"[1, 2]", None, "YAML001"),
    (b"null", None, "YAML001"),
    (b"\xff\xfe", None, "YAML001"),
    (b'{"id": 3, "model": "a/b", "accelerator": "l40s", "tensorParalel": 2}', 3, "SPEC001"),
    (b'{"id": 4, "model": "a/b", "accelerator": "l40s", "max_model_len": 2}', 4, "SPEC001"),
    (b'{"id": 5, "model": "a/b", "accelerator": "l40s", "tensorParallel": "two"}', 5, "SPEC003"),
    (b'{"id": 6, "model": "a/b", "accelerator": "l40s", "tensorParallel": true}', 6, "SPEC003"),
    (b'{"id": 7, "model": "a/b", "accelerator": "l40s", "gpuMemoryUtilization": NaN}', 7, "SPEC003"),
    (b'{"id": 8, "model": "a/b", "accelerator": "l40s", "config": {}}', 8, "SPEC003"),
    (b'{"id": 9, "config": [], "accelerator": "l40s"}', 9, "SPEC003"),
    (b'{"id": 10, "accelerator": "l40s"}', 10, "SPEC002"),
    (b'{"id": 11, "model": "a/b"}', 11, "SPEC002"),
    (b'{"id": [1], "model": "a/b", "accelerator": "l40s"}', None, "SPEC003"),
    (b'{"id": 12, "config": {}, "accelerator": "l40s"}', 12, "MODEL002"),
    (b'{"id": null, "model": "Qwen/Qwen3-8B", "accelerator": "l40s", "maxModelLen": null}', None, None),
    (b'{"id": "\\ud800", "model": "Qwen/Qwen3-8B", "accelerator": "l40s"}', "\ud800", None),
]


def test_every_line_of_a_batch_is_answered_in_order(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"\xef\xbb\xbf\n\n" + b"\r\n".join(line for line, _, _ in BATCH)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))

    result = modelyard("estimate", "--batch", "-", "--output", "json")

    found = [json.loads(line) for line in result.out.splitlines()]
    assert [(each["id"], codes(each)[0] if each["findings"] else None) for each in found] == [
        (i, code) for _, i, code in BATCH
    ]
    assert all(list(each) == KEYS for each in found)
    assert "line 5: " in found[2]["findings"][0]["message"]
    assert result.code == 0


def test_people_get_a_line_an_answer_that_leaves_their_terminal_alone(
    modelyard: Modelyard, tmp_path: Path
) -> None:
    lines = [asked(), asked(id="\x1b[2J\ud800"), {"id": 3}]
    (tmp_path / "batch.jsonl").write_text("\n".join(map(json.dumps, lines)))

    result = modelyard("estimate", "--batch", str(tmp_path / "batch.jsonl"))

    assert len(result.out.splitlines()) == 3
    assert "\x1b" not in result.out
    assert "SPEC002" in result.out


def test_a_batch_is_answered_line_by_line() -> None:
    def lines() -> Iterator[bytes]:
        yield json.dumps(asked()).encode()
        raise AssertionError("the second line was read before the first was answered")

    class Slow(io.BytesIO):
        source = lines()

        def readline(self, size: int | None = -1, /) -> bytes:
            return next(self.source)

    assert answer(next(read_questions(Slow()))).fits


def test_a_line_without_end_is_skipped_and_not_held() -> None:
    text = b'{"id": "' + b"x" * (3 * LONGEST_LINE) + b'"}\n' + json.dumps(asked()).encode()
    first, second = read_questions(io.BytesIO(text))

    assert [finding.code for finding in first.findings] == ["YAML001"]
    assert second.id == "q"


def test_whole_numbers_may_be_written_as_json_likes() -> None:
    assert said(tensorParallel=2.0, computeCapability=8.9) == said(tensorParallel=2)


def test_what_cannot_be_computed_is_null_and_does_not_fit() -> None:
    found = said(tensorParallel=3)

    assert codes(found) == ["TP001"]
    assert [found[key] for key in KEYS[1:8]] == [None] * 7
    assert (found["fits"], found["longestLen"]) == (False, 0)


def test_a_cache_below_zero_is_none() -> None:
    found = said(model="Qwen/Qwen3-32B")

    assert codes(found) == ["FIT001"]
    assert found["weightsGiB"] > 60
    assert (found["kvCacheGiB"], found["kvCacheTokens"], found["maxConcurrency"]) == (0, 0, 0)
    assert (found["fits"], found["longestLen"]) == (False, 0)


def test_a_length_that_does_not_fit_names_the_one_that_does() -> None:
    found = said(model="Qwen/Qwen3-32B-FP8", maxModelLen=40960)

    assert codes(found) == ["KV001"]
    assert 0 < found["longestLen"] < 40960
    assert said(model="Qwen/Qwen3-32B-FP8", maxModelLen=found["longestLen"])["fits"] is True


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"model": "Qwen/Qwen3-32B"},
        {"model": "meta-llama/Llama-3.3-70B-Instruct", "accelerator": "h100", "tensorParallel": 4},
        {"accelerator": "trn2", "engine": "vllm-neuron", "tensorParallel": 4},
    ],
    ids=str,
)
def test_a_drawn_ledger_is_the_whole_memory(question: dict[str, Any]) -> None:
    ledger = estimate(EstimateRequest.model_validate(asked(**question))).ledger
    assert ledger is not None
    parts = ledger_json(ledger)

    assert sum(amount for part, amount in parts.items() if part != "total") == parts["total"]
    present = [part for part in ledger_parts(ledger) if part.amount.in_bytes > 0]
    for width in (20, 33, 80, 200):
        bar = ledger_bar(ledger, width, colours=False).plain
        assert len(bar) == width
        assert list(dict.fromkeys(bar)) == [part.plain for part in present]


def test_a_bar_is_blocks_where_there_are_colours() -> None:
    ledger = estimate(EstimateRequest.model_validate(asked())).ledger
    assert ledger is not None
    out = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    out.print(ledger_bar(ledger, 40, colours=True))

    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().count("█") == 40


def test_people_see_the_ledger_and_the_finding(modelyard: Modelyard) -> None:
    result = modelyard("estimate", *QWEN, "--max-model-len", "40960")

    assert "####" in result.out
    assert "KV cache" in result.out
    assert "memory of one GPU" in result.out
    assert "KV001" in result.err
    assert "\x1b" not in result.out


def test_the_hub_is_asked_only_on_demand(modelyard: Modelyard) -> None:
    """Sockets are errors here, and so nothing is asked without --hub, nor about what the table has."""
    unknown = modelyard("estimate", "--model", "acme/unknown", "--accelerator", "l40s", "-o", "json")
    known = modelyard("estimate", *QWEN, "--max-model-len", "8192", "--hub")

    assert codes(json.loads(unknown.out)) == ["MODEL001"]
    assert known.code == 0


def test_without_huggingface_hub_the_message_says_what_to_do(
    modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    result = modelyard("estimate", "--model", "acme/unknown", "--accelerator", "l40s", "--hub")

    assert result.code == 1
    assert "modelyard[hub]" in result.err
    assert "--config DIR" in result.err
