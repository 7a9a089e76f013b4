"""The registry of checks and the findings that refer to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelyard.findings import CHECKS, Finding, Location, Severity, check, worst
from modelyard.findings.__main__ import main as write_pages


def _reported_codes(root: Path) -> Iterator[str]:
    """The code in every `Finding("CODE", …)`, `FlagProblem("CODE", …)` and `broken(…, code="CODE")`."""
    for folder in ("constructs/modelyard", "charts", "infra"):
        for path in (root / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Name(id="Finding" | "FlagProblem"), args=[ast.Constant(value=str(code)), *_]
                    ):
                        yield code
                    case ast.Call(
                        func=ast.Name(id="broken"),
                        keywords=[ast.keyword(arg="code", value=ast.Constant(value=str(code)))],
                    ):
                        yield code


def test_every_reported_code_is_registered_and_every_registered_code_is_reported(root: Path) -> None:
    assert set(_reported_codes(root)) == set(CHECKS)


@pytest.mark.parametrize("code", CHECKS)
def test_a_check_says_what_why_and_how_to_get_out(code: str) -> None:
    one = check(code)

    assert one.code == code
    assert one.severity in ("error", "warning")
    assert not one.title.endswith(".")
    assert one.cause.endswith(".")
    assert one.fix.endswith(".")


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(KeyError):
        check("NOPE001")


def test_a_finding_reads_as_place_code_problem_and_way_out() -> None:
    finding = Finding("KV001", "too long", "use 4096", Location("models/a.yaml", 3, 7))

    assert str(finding) == "models/a.yaml:3:7 KV001 error: too long; use 4096"


def test_a_finding_keeps_its_first_place() -> None:
    placed = Finding("KV001", "m", "f").at(Location("a.yaml", 1)).at(Location("b.yaml", 2))

    assert placed.location == Location("a.yaml", 1)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ([], None),
        ([Finding("CAP001", "m", "f")], Severity.WARNING),
        ([Finding("CAP001", "m", "f"), Finding("KV001", "m", "f")], Severity.ERROR),
        ([Finding("CAP001", "m", "f").promoted()], Severity.ERROR),
    ],
)
def test_the_gravest_level_counts(findings: list[Finding], expected: Severity | None) -> None:
    assert worst(findings) is expected


def test_the_pages_are_written_anew_and_other_files_beside_them_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.md").write_text("# mine\n", encoding="utf-8")
    (tmp_path / "OLD001.md").write_text("# OLD001: of a code that is gone\n", encoding="utf-8")

    assert write_pages([str(tmp_path)]) == 0

    assert (tmp_path / "notes.md").read_text(encoding="utf-8") == "# mine\n"
    assert not (tmp_path / "OLD001.md").exists()
    assert (tmp_path / "README.md").is_file()
    assert "notes.md is no page of a finding: left alone" in capsys.readouterr().err
