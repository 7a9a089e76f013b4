"""The root folder `constructs/` must never shadow PyPI's `constructs`, and imports point in one direction."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_constructs_is_a_source_root_and_no_package() -> None:
    """With an `__init__.py` there, aws-cdk-lib fails with: No module named 'constructs._jsii'."""
    assert not (ROOT / "constructs" / "__init__.py").exists()


def test_the_package_constructs_is_the_one_from_pypi() -> None:
    spec = importlib.util.find_spec("constructs")

    assert spec is not None
    assert spec.origin is not None
    assert ROOT / "constructs" not in Path(spec.origin).parents


def test_no_second_copy_of_the_library_is_importable_by_its_folder() -> None:
    """jsii extends the path of `constructs`, so `constructs.modelyard` would be a second copy of every
    class."""
    banned = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    assert '"constructs.modelyard".msg' in banned


def test_files_that_are_spread_over_processes_by_name_are_there() -> None:
    from tests.conftest import APART, LONG, TOGETHER

    assert [
        name for name in (*APART, *LONG, *TOGETHER) if not (ROOT / name.partition("::")[0]).exists()
    ] == []


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'constructs'}", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy_of_the_sources(tmp_path: Path) -> Path:
    for name in ("constructs", "infra", "charts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_import_rules_hold(copy_of_the_sources: Path) -> None:
    result = lint_imports(copy_of_the_sources)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("constructs/modelyard/planning/cost.py", "import aws_cdk"),
        ("constructs/modelyard/cli/plan.py", "import modelyard.k8s.construct"),
        ("constructs/modelyard/objects/platform/shared.py", "import modelyard.objects.serving.model"),
        ("constructs/modelyard/objects/manifest.py", "import cdk8s"),
        ("constructs/modelyard/findings/finding.py", "import modelyard.spec.model"),
    ],
)
def test_a_planted_import_breaks_the_rules(copy_of_the_sources: Path, module: str, planted: str) -> None:
    file = copy_of_the_sources / module
    file.write_text(file.read_text(encoding="utf-8") + f"\n{planted}\n", encoding="utf-8")

    result = lint_imports(copy_of_the_sources)

    assert result.returncode == 1, result.stdout
    assert "BROKEN" in result.stdout
