"""Reading model files: every problem with its place and fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from modelyard.findings import Finding
from modelyard.spec import load_catalogue, load_model
from tests.unit.given import a_model, codes

THREE_LINES = "model: hf://Qwen/Qwen3-32B-FP8\naccelerator: l40s\nreplicas: 2\n"


def problems(folder: Path, text: str, name: str = "qwen.yaml") -> list[Finding]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_model(path)[2]


def places(findings: list[Finding]) -> list[tuple[str, int, int]]:
    return [(f.code, f.location.line, f.location.column) for f in findings if f.location]


@pytest.mark.parametrize(
    ("added", "place", "fix"),
    [
        ("replica: 3", (4, 1), "did you mean 'replicas'?"),
        ("engine: {maxModelLength: 4096}", (4, 10), "did you mean 'maxModelLen'?"),
        ("engine: {max_model_len: 4096}", (4, 10), "did you mean 'maxModelLen'?"),
        ("scaling:\n  targets: 3", (5, 3), "did you mean 'target'?"),
        ("adapters: [{name: legal, uri: hf://a/b, rnk: 8}]", (4, 41), "did you mean 'rank'?"),
        ("startup: {xyzzy: 1}", (4, 11), "known keys are budget"),
    ],
)
def test_an_unknown_key_gets_a_suggestion(
    tmp_path: Path, added: str, place: tuple[int, int], fix: str
) -> None:
    [finding] = problems(tmp_path, THREE_LINES + added)

    assert places([finding]) == [("SPEC001", *place)]
    assert finding.fix == fix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: hf://a/b\nreplicas: 2\n", [("SPEC002", 1, 1)]),
        (THREE_LINES.replace("replicas: 2", "replicas: two"), [("SPEC003", 3, 11)]),
        (THREE_LINES.replace("replicas: 2", "replicas: {min: 4, max: 2}"), [("SPEC003", 3, 11)]),
        (THREE_LINES.replace("l40s", "l40s:many"), [("SPEC003", 2, 14)]),
        (THREE_LINES.replace("hf://", "https://huggingface.co/"), [("SPEC003", 1, 8)]),
        (THREE_LINES + "drain: 60 seconds", [("SPEC003", 4, 8)]),
        (THREE_LINES + "drain: 0s", [("SPEC003", 4, 8)]),
        (THREE_LINES + "engine: {gpuMemoryUtilization: 0.99}", [("SPEC003", 4, 32)]),
        (THREE_LINES + "engine: {args: {--seed: 1}}", [("SPEC003", 4, 16)]),
        (THREE_LINES + "engine: {env: {VLLM_PORT: '80'}}", [("SPEC003", 4, 15)]),
        (THREE_LINES + "engine: {env: {HF_HUB_OFFLINE: '0'}}", [("SPEC003", 4, 15)]),
        (THREE_LINES + "name: vllm-qwen", [("SPEC003", 4, 7)]),
        (THREE_LINES + "availability: always", [("SPEC003", 4, 15)]),
        (THREE_LINES + "model: again", [("YAML001", 4, 1)]),
        (THREE_LINES + "engine: {", [("YAML001", 4, 10)]),
        ("- a list\n", [("YAML001", 1, 1)]),
        ("", [("YAML001", 1, 1)]),
    ],
)
def test_a_wrong_value_is_found_where_it_stands(
    tmp_path: Path, text: str, expected: list[tuple[str, int, int]]
) -> None:
    assert places(problems(tmp_path, text)) == expected


@pytest.mark.parametrize("value", ["yes", "1.0", "3000000000000"])
def test_yaml_1_2_reads_no_surprises(tmp_path: Path, value: str) -> None:
    """`yes` is a word, not a truth, and numbers are not coerced into replicas."""
    assert "SPEC003" in codes(problems(tmp_path, THREE_LINES.replace("replicas: 2", f"replicas: {value}")))


@pytest.mark.parametrize(
    "line",
    [
        "description: arn:aws:iam::123456789012:role/x",
        "owner: {team: search, contact: '123456789012'}",
        "engine: {env: {BUCKET: 'arn:aws-cn:s3:::weights'}}",
    ],
)
def test_a_model_file_belongs_to_no_account(tmp_path: Path, line: str) -> None:
    assert codes(problems(tmp_path, THREE_LINES + line)) == ["ENV001"]


@pytest.mark.parametrize(
    "key", ["account", "region", "availabilityZones", "cluster", "namespace", "instanceType", "secrets"]
)
def test_a_model_file_holds_nothing_of_an_environment(tmp_path: Path, key: str) -> None:
    assert codes(problems(tmp_path, f"{THREE_LINES}{key}: x")) == ["SPEC001"]


@pytest.mark.parametrize(
    "secret",
    [
        "hf_" + "a" * 34,
        "sk-" + "b" * 20,
        "AKIA" + "C" * 16,
        "ghp_" + "d" * 36,
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_is_refused_and_not_repeated(tmp_path: Path, secret: str) -> None:
    [finding] = problems(tmp_path, f"{THREE_LINES}# {secret}")

    assert places([finding]) == [("SEC001", 4, 3)]
    assert secret not in str(finding)


@pytest.mark.parametrize("word", ["task-force-of-the-west", "hf_hub", "desk-aaaaaaaaaaaaaaaaaaaa"])
def test_words_that_only_begin_like_a_secret_pass(tmp_path: Path, word: str) -> None:
    assert problems(tmp_path, f"{THREE_LINES}description: {word}") == []


def test_remote_code_needs_a_reason_and_a_commit(tmp_path: Path) -> None:
    text = "model: {{uri: hf://a/b, trustRemoteCode: {{reason: {}}}, revision: {}}}\naccelerator: l4\nreplicas: 1\n"

    assert problems(tmp_path, text.format("the tokenizer is custom", "a" * 40)) == []
    assert codes(problems(tmp_path, text.format("the tokenizer is custom", "main"))) == ["SPEC003"]
    assert codes(problems(tmp_path, text.format("custom", "a" * 40))) == ["SPEC003"]


def test_two_files_cannot_describe_one_model(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(THREE_LINES + "name: same", encoding="utf-8")
    (tmp_path / "b.yaml").write_text(THREE_LINES + "name: same", encoding="utf-8")

    catalogue, findings = load_catalogue(tmp_path)

    assert list(catalogue.models) == ["same"]
    assert places(findings) == [("SPEC004", 4, 7)]
    assert "a.yaml" in findings[0].message


def test_a_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("model: [", encoding="utf-8")
    (tmp_path / "right.yaml").write_text(THREE_LINES, encoding="utf-8")

    catalogue, findings = load_catalogue(tmp_path)

    assert list(catalogue.models) == ["right"]
    assert codes(findings) == ["YAML001"]


def test_an_empty_folder_is_a_finding(tmp_path: Path) -> None:
    assert codes(load_catalogue(tmp_path)[1]) == ["YAML001"]


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        a_model().drain = 10  # type: ignore[misc]
