"""What is said about bad files, word for word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from modelyard.findings import Finding, Severity
from modelyard.project import load_project
from modelyard.spec import load_environment, load_model
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.messages import FORMS, RULES, uncapitalized
from modelyard.spec.question import read_question
from modelyard.spec.schema import environment_schema, model_schema, pipeline_schema, project_schema
from modelyard.spec.yaml_source import parse_yaml

ROWS = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "bad_inputs.yaml").read_text(encoding="utf-8")
)
RIGHT = {
    "model": {"model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": "2"},
    "environment": {
        "account": '"123456789012"',
        "region": "us-east-2",
        "availabilityZones": "[us-east-2a, us-east-2b]",
        "pools": "{g6e: {accelerator: l40s, limit: 4}}",
    },
}
FOREIGN = re.compile(
    r"(?i)\b(dictionary|instance of|tuple|pattern|unable to parse|valid (string|integer|list)|input should"
    r"|while (parsing|scanning)|did not find)\b|\^|\\"
)


def said(row: dict[str, Any], folder: Path) -> list[str]:
    """Place, code, message and fix of each finding about the row's file or question."""
    if row["file"] == "question":
        return [f"{f.code} {f.message} | {f.fix}" for f in read_question(row["lines"]).findings]
    path = folder / ("qwen.yaml" if row["file"] == "model" else "dev.yaml")
    path.write_bytes(text_of(row).encode("latin-1" if row.get("encoding") == "latin-1" else "utf-8"))
    findings = (load_model if row["file"] == "model" else load_environment)(path)[2]
    return [
        f"{f.location.line}:{f.location.column} {f.code} {f.message} | {f.fix}"
        for f in findings
        if f.location
    ]


def text_of(row: dict[str, Any]) -> str:
    if "text" in row:
        return str(row["text"])
    lines = {**RIGHT[row["file"]], **row["lines"]}
    return "".join(f"{key}: {value}\n" for key, value in lines.items() if value is not None)


def title(row: dict[str, Any]) -> str:
    return repr(row.get("text") or " ".join(f"{k} {v}" for k, v in row["lines"].items()))[1:60]


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_a_bad_file_is_explained(row: dict[str, Any], tmp_path: Path) -> None:
    assert said(row, tmp_path) == row["says"]


def test_the_table_is_long_and_speaks_of_no_library() -> None:
    messages = [line.partition(" | ")[0] for row in ROWS for line in row["says"]]

    assert len(ROWS) >= 120
    assert [line for line in messages if FOREIGN.search(line)] == []


def test_a_right_file_has_no_finding(tmp_path: Path) -> None:
    assert [said({"file": kind, "lines": {}}, tmp_path) for kind in RIGHT] == [[], []]


@given(
    st.lists(
        st.sampled_from([*"ab:{}[],&*!|>-?#'\"%@`~\t \n", "\n  ", "a: ", "- ", "\\x", "---\n"]), max_size=12
    )
)
def test_no_text_is_answered_in_the_words_of_the_library(pieces: list[str]) -> None:
    found = parse_yaml("".join(pieces), "qwen.yaml")

    assert not isinstance(found, Finding) or not FOREIGN.search(f"{found.message} {found.fix}")


def test_every_expression_of_the_schemas_has_an_example_that_matches_it_or_a_rule() -> None:
    schemas = (model_schema(), environment_schema(), pipeline_schema(), project_schema())
    found = set(expressions([*schemas, EstimateRequest.model_json_schema()]))

    assert found == FORMS.keys() | RULES.keys()
    assert [form for pattern, form in FORMS.items() if not re.search(pattern, form)] == []


def expressions(schema: Any) -> list[str]:
    """Expressions that values or names must match, anywhere in the schema."""
    if isinstance(schema, list):
        return [each for item in schema for each in expressions(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return [*own, *schema.get("patternProperties", {}), *expressions([*schema.values()])]


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("Must be x", "must be x"),
        ("AWS account", "AWS account"),
        ("hF_TOKEN", "hF_TOKEN"),
        ("Kubernetes x", "Kubernetes x"),
    ],
)
def test_names_keep_their_capitals(text: str, within: str) -> None:
    assert uncapitalized(text) == within


ENVIRONMENT = """
account: "123456789012"
region: us-east-2
availabilityZones: [us-east-2a, us-east-2b]
pools:
  g6e: {accelerator: l40s, limit: 8}
  p5: {accelerator: h100, limit: 16}
secrets: {hf-token: lab/hf-token}
"""


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            {"accelerator": "l40"},
            "HW001 unknown accelerator 'l40' | did you mean 'l40s'? use auto, none or one of t4, t4g",
        ),
        (
            {"pool": "g6"},
            "ENV002 pool 'g6' is not defined in environment lab | did you mean 'g6e'? use one of g6e, p5",
        ),
        (
            {"model": "{uri: hf://meta-llama/Llama-3.1-8B-Instruct, auth: hf-tokn}"},
            "ENV002 secret 'hf-tokn' is not mapped in environment lab | did you mean 'hf-token'? add it under secrets",
        ),
        (
            {"model": "hf://deepseek-ai/DeepSeek-V3", "accelerator": "auto"},
            (
                "CAP003 no accelerator of environment lab holds the model: 16 h100 are 2 nodes, and pool p5 has no fabric "
                "between them; weights 41.0 GiB, activations 1.0 GiB and overhead 1.5 GiB need 43.4 GiB of 40.0 GiB on l40s:16 "
                "| set the pool's fabric to efa, or ask for no more accelerators than a node has; or add a pool with a larger "
                "accelerator, or use a quantized checkpoint"
            ),
        ),
    ],
)
def test_what_an_environment_lacks_is_said_once_with_the_way_out(
    lines: dict[str, str], says: str, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "lab.yaml").write_text(ENVIRONMENT, encoding="utf-8")
    stated = {**RIGHT["model"], **lines}
    text = "".join(f"{key}: {value}\n" for key, value in stated.items())
    (tmp_path / "models" / "qwen.yaml").write_text(text, encoding="utf-8")

    planned = load_project("lab", tmp_path / "models", tmp_path / "environments").plan()

    assert planned is not None
    [found] = [each for each in planned.findings if each.level is Severity.ERROR]
    assert f"{found.code} {found.message} | {found.fix}".startswith(says)
