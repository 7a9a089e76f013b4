"""What a shell offers at TAB, asked as bash asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.given import Modelyard


@pytest.fixture
def offered(modelyard: Modelyard, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_MODELYARD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        return modelyard().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("modelyard endp", ["endpoint"]),
        ("modelyard plan --env ", ["dev", "local", "prod", "staging"]),
        ("modelyard plan --environments tests/fixtures/environments --env ", ["lab"]),
        ("modelyard explain qwen3-3", ["qwen3-32b-fp8"]),
        ("modelyard explain YAML", ["YAML001", "YAML002"]),
        ("modelyard smoke --models tests/fixtures/serving/models sg", ["sglang-chat"]),
        ("modelyard estimate --accelerator h", ["h100", "h200"]),
        ("modelyard validate gpt", ["gpt-oss-120b"]),
        ("modelyard validate models/gp", ["models/gpt-oss-120b.yaml"]),
        ("modelyard validate --env st", ["staging"]),
        ("modelyard size openai/gpt-oss-2", ["openai/gpt-oss-20b"]),
        ("modelyard explain nowhere", []),
    ],
)
def test_names_are_offered(offered: Callable[[str], list[str]], line: str, names: list[str]) -> None:
    assert offered(line) == names


def test_a_folder_that_is_not_there_offers_nothing(
    offered: Callable[[str], list[str]], tmp_path: Path
) -> None:
    assert offered(f"modelyard explain --models {tmp_path}/x q") == []
    assert offered(f"modelyard plan --environments {tmp_path}/x --env ") == []
    assert offered(f"modelyard validate {tmp_path}/x/") == []
