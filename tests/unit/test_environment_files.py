"""Reading environment files, and their overrides of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.spec import load_environment
from modelyard.spec.environment import Override
from tests.unit.given import a_model, a_plan, an_environment, codes

FILE = 'account: "123456789012"\nregion: us-east-2\navailabilityZones: [us-east-2a, us-east-2b]\n'


def problems(folder: Path, text: str) -> list[tuple[str, int, int]]:
    path = folder / "lab.yaml"
    path.write_text(text, encoding="utf-8")
    environment, _, findings = load_environment(path)
    assert (environment is None) == bool(findings)
    return [(f.code, f.location.line, f.location.column) for f in findings if f.location]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FILE, []),
        (FILE.replace('"', ""), [("SPEC003", 1, 10)]),
        (FILE.replace("us-east-2b", "eu-west-1a"), [("SPEC003", 1, 1)]),
        (FILE.replace("us-east-2b", "us-east-2a"), [("SPEC003", 3, 20)]),
        (FILE.replace("region: us-east-2\n", ""), [("SPEC002", 1, 1)]),
        (FILE + "pool: {}", [("SPEC001", 4, 1)]),
        (FILE + "pools: {g6e: {accelerator: l40s}}", [("SPEC002", 4, 14)]),
        (FILE + "pools: {g6e: {accelerator: l40s, limit: 0}}", [("SPEC003", 4, 41)]),
        (FILE + "pools: {g6e: {accelerator: l40s, limit: 8, capacity: [reserved]}}", [("SPEC003", 4, 14)]),
        (FILE + "cluster: {publicAccessCidrs: [0.0.0.0/0]}", [("SPEC003", 4, 30)]),
        (FILE + "delivery: argocd", [("SPEC003", 1, 1)]),
        (FILE + "cache: {fileSystemId: fs-0123456789abcdef0}", [("SPEC003", 4, 8)]),
        (FILE + "secrets: {hf-token: hf_" + "a" * 34 + "}", [("SEC001", 4, 21)]),
        (FILE + "acknowledge: [{code: CAP001, reason: short}]", [("SPEC003", 4, 38)]),
    ],
)
def test_a_mistake_is_found_where_it_stands(
    tmp_path: Path, text: str, expected: list[tuple[str, int, int]]
) -> None:
    assert problems(tmp_path, text) == expected


def test_an_override_may_change_a_closed_list_and_nothing_else(tmp_path: Path) -> None:
    assert set(Override.model_fields) == {"replicas", "scaling", "pool", "access", "availability"}

    for key in ("accelerator", "engine", "model", "drain", "patches", "features"):
        [place] = problems(tmp_path, f"{FILE}overrides: {{qwen: {{{key}: x}}}}")
        assert place == ("SPEC001", 4, 20)


@pytest.mark.parametrize(
    ("override", "field", "expected"),
    [
        ({"replicas": {"min": 1, "max": 3}}, "replicas", {"min": 1, "max": 3}),
        ({"availability": "single"}, "availability", "single"),
        ({"pool": "other"}, "pool", "other"),
    ],
)
def test_an_override_reaches_the_plan(override: dict[str, Any], field: str, expected: object) -> None:
    pools = {name: {"accelerator": "l40s", "limit": 32} for name in ("g6e", "other")}
    environment = an_environment(pools=pools, overrides={"qwen": override})

    [planned] = a_plan(a_model(), environment=environment).models

    assert planned.model.model_dump()[field] == expected


def test_an_override_of_nothing_is_found() -> None:
    environment = an_environment(
        overrides={"nobody": {"availability": "single"}, "qwen": {"pool": "nowhere"}}
    )

    assert codes(a_plan(a_model(), environment=environment).findings).count("ENV002") == 3


def test_environments_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        an_environment().region = "eu-west-1"  # type: ignore[misc]
