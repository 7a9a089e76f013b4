"""Reading pipeline.yaml: every mistake with its place and its fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from modelyard.spec import load_pipeline
from modelyard.spec.schema import pipeline_schema
from tests.unit.given import yaml_data

ROOT = Path(__file__).parents[2]
FILE = """\
repository: example-org/modelyard
connectionArn: arn:aws:codeconnections:us-east-2:444444444444:connection/abc
account: "444444444444"
region: us-east-2
stages: [dev]
"""


def problems(folder: Path, text: str) -> list[tuple[str, int, int]]:
    path = folder / "pipeline.yaml"
    path.write_text(text, encoding="utf-8")
    pipeline, _, findings = load_pipeline(path)
    assert (pipeline is None) == bool(findings)
    return [(f.code, f.location.line, f.location.column) for f in findings if f.location]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FILE, []),
        (FILE.replace("codeconnections", "codestar-connections"), []),
        (FILE.replace('"', ""), [("SPEC003", 3, 10)]),
        (FILE.replace("example-org/modelyard", "https://github.com/a/b"), [("SPEC003", 1, 13)]),
        (FILE.replace("codeconnections", "iam"), [("SPEC003", 2, 16)]),
        (FILE.replace("[dev]", "[]"), [("SPEC003", 5, 9)]),
        (FILE.replace("[dev]", "[dev, dev]"), [("SPEC003", 5, 9)]),
        (FILE.replace("[dev]", "[staging, {environment: dev, approval: ok}]"), [("SPEC003", 5, 48)]),
        (FILE.replace("stages: [dev]\n", ""), [("SPEC002", 1, 1)]),
        (FILE + "stage: []", [("SPEC001", 6, 1)]),
        (FILE + "github: {ownerId: 1, repositoryId: 2}", []),
        (FILE + "github: {ownerId: 1}", [("SPEC002", 6, 9)]),
        (FILE + "github: {ownerId: org, repositoryId: 2}", [("SPEC003", 6, 19)]),
        (FILE + "notify: {emails: [a@example.org]}", []),
        (FILE + "notify: {topicArn: 'arn:aws:sns:us-east-2:444444444444:ops'}", []),
        (FILE + "notify: {emails: [ops]}", [("SPEC003", 6, 19)]),
        (FILE + "notify: {}", []),
        (
            FILE + "notify: {emails: [a@b.org], topicArn: 'arn:aws:sns:us-east-2:444444444444:ops'}",
            [("SPEC003", 6, 9)],
        ),
        (FILE + "branch: hf_" + "a" * 30, [("SEC001", 6, 9)]),
    ],
)
def test_a_mistake_is_found_where_it_stands(
    tmp_path: Path, text: str, expected: list[tuple[str, int, int]]
) -> None:
    assert problems(tmp_path, text) == expected


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    pipeline, _, findings = load_pipeline(tmp_path / "pipeline.yaml")

    assert pipeline is None
    assert [finding.code for finding in findings] == ["YAML001"]


def test_the_shipped_pipeline_names_shipped_environments_and_asks_before_production() -> None:
    pipeline, _, findings = load_pipeline(ROOT / "pipeline.yaml")

    assert findings == []
    assert pipeline is not None
    assert [stage.environment for stage in pipeline.stages] == ["dev", "staging", "prod"]
    assert [bool(stage.approval) for stage in pipeline.stages] == [False, False, True]
    for stage in pipeline.stages:
        assert (ROOT / "environments" / f"{stage.environment}.yaml").exists()


def test_the_schema_accepts_the_shipped_file_and_marks_a_mistake() -> None:
    schema = Draft202012Validator(pipeline_schema())
    data = yaml_data(ROOT / "pipeline.yaml")

    assert list(schema.iter_errors(data)) == []
    assert list(schema.iter_errors(data | {"stages": [{"approval": "somebody has to look"}]}))
    assert list(schema.iter_errors(data | {"repo": "a/b"}))
