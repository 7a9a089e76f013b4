"""`modelyard validate` over files with planted mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.given import Modelyard

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
LAB = FIXTURES / "environments"

TEN_MISTAKES = [
    ("SPEC001", 6, 1),  # unknown key
    ("SPEC003", 7, 8),  # a duration in words
    ("ENV002", 8, 7),  # a pool that no environment has
    ("ENV001", 9, 32),  # an ARN
    ("KV001", 11, 16),  # a length that does not fit
    ("SEC001", 12, 20),  # a token
    ("VLLM001", 14, 17),  # a removed flag
    ("VLLM002", 15, 27),  # a flag of the plan
    ("VLLM001", 16, 18),  # a misspelt flag
    ("SPEC002", 18, 5),  # an adapter without its uri
]


def found(validation: dict[str, Any], file: Path) -> list[tuple[str, int, int]]:
    return [(f["code"], f["line"], f["column"]) for f in validation["findings"] if f["file"] == str(file)]


@pytest.mark.parametrize(
    "environments", [LAB, ROOT / "environments"], ids=["one environment", "all environments"]
)
def test_ten_mistakes_in_one_file_are_ten_findings(modelyard: Modelyard, environments: Path) -> None:
    """Each once, with its line and column, however many environments the file is judged in."""
    file = FIXTURES / "ten_mistakes.yaml"

    answer = modelyard("validate", str(file), "--environments", str(environments), "--output", "json")

    assert answer.code == 1
    assert found(json.loads(answer.out), file) == TEN_MISTAKES


def test_findings_for_people_name_place_problem_and_way_out(modelyard: Modelyard) -> None:
    file = FIXTURES / "ten_mistakes.yaml"

    answer = modelyard("validate", str(file), "--environments", str(LAB))

    lines = answer.err.splitlines()
    assert [line.split()[0] for line in lines[::2]] == [
        f"{file}:{line}:{column}" for _, line, column in TEN_MISTAKES
    ]
    assert lines[1] == "    did you mean 'description'?"
    assert "use kv-offloading-size instead" in answer.err
    assert "hf_notATokenButShapedLikeOne" not in answer.err
    assert answer.out == "1 model in lab: 10 errors, 0 warnings\n"


def test_the_impossible_file_is_answered_with_the_length_that_fits(
    modelyard: Modelyard, tmp_path: Path
) -> None:
    impossible = FIXTURES / "qwen3-vl-8b-24gb.yaml"

    answer = modelyard("validate", str(impossible), "--environments", str(LAB), "--output", "json")

    [finding] = json.loads(answer.out)["findings"]
    assert (answer.code, finding["code"], finding["line"], finding["column"]) == (1, "KV001", 5, 23)
    fitting = finding["fix"].removeprefix("use a length of ").partition(",")[0]
    possible = tmp_path / "possible.yaml"
    possible.write_text(impossible.read_text(encoding="utf-8").replace("65536", fitting).split("\n", 1)[1])
    assert modelyard("validate", str(possible), "--environments", str(LAB)).code == 0


def test_the_shipped_catalogue_is_free_of_errors(modelyard: Modelyard) -> None:
    answer = modelyard("validate", "--output", "json")

    validation = json.loads(answer.out)
    assert answer.code == 0
    assert validation["environments"] == ["dev", "local", "prod", "staging"]
    assert len(validation["models"]) == 7


@pytest.mark.parametrize("environment", ["staging", "prod"])
def test_strict_environments_are_free_of_warnings_too(modelyard: Modelyard, environment: str) -> None:
    answer = modelyard("validate", "--env", environment, "--fail-on", "warning", "--quiet")

    assert (answer.code, answer.err) == (0, "")


def test_warnings_fail_only_where_asked(modelyard: Modelyard) -> None:
    assert modelyard("validate", "--env", "dev").code == 0
    assert modelyard("validate", "--env", "dev", "--fail-on", "warning").code == 1


def test_a_file_that_is_not_there_is_a_finding(modelyard: Modelyard) -> None:
    answer = modelyard("validate", "nowhere.yaml", "--env", "prod")

    assert answer.code == 1
    assert answer.err.startswith("nowhere.yaml:1:1 YAML001 error: cannot read the file")
