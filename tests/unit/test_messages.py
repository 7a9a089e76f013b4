"""What is said about bad files, word for word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.spec import load_environment, load_model
from modelyard.spec.estimate import EstimateRequest
from modelyard.spec.messages import FORMS, RULES, uncapitalized
from modelyard.spec.schema import environment_schema, model_schema, pipeline_schema, project_schema

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
    r"(?i)\b(dictionary|instance of|tuple|pattern|unable to parse|valid (string|integer|list)|input should)\b|\^|\\"
)


def said(row: dict[str, Any], folder: Path) -> list[str]:
    """Place, code, message and fix of each finding about the row's file."""
    lines = {**RIGHT[row["file"]], **row["lines"]}
    path = folder / ("qwen.yaml" if row["file"] == "model" else "dev.yaml")
    path.write_text(
        "".join(f"{key}: {value}\n" for key, value in lines.items() if value is not None), "utf-8"
    )
    findings = (load_model if row["file"] == "model" else load_environment)(path)[2]
    return [
        f"{f.location.line}:{f.location.column} {f.code} {f.message} | {f.fix}"
        for f in findings
        if f.location
    ]


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: " ".join(f"{k} {v}" for k, v in row["lines"].items())[:60]
)
def test_a_bad_file_is_explained(row: dict[str, Any], tmp_path: Path) -> None:
    assert said(row, tmp_path) == row["says"]


def test_the_table_is_long_and_speaks_of_no_library() -> None:
    messages = [line.partition(" | ")[0] for row in ROWS for line in row["says"]]

    assert len(ROWS) >= 120
    assert [line for line in messages if FOREIGN.search(line)] == []


def test_a_right_file_has_no_finding(tmp_path: Path) -> None:
    assert [said({"file": kind, "lines": {}}, tmp_path) for kind in RIGHT] == [[], []]


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
