"""`from modelyard import ...`: the public API, typed, and without jsii."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import modelyard

ROOT = Path(__file__).parents[2]
CONSUMER = """
from importlib import import_module
from pathlib import Path

from modelyard import Environment, Finding, Model, ModelPlan, Plan, Project, load_project, plan, render


def names(found: Plan) -> list[str]:
    return [each.name for each in found.models]


project: Project = load_project("dev")
planned: Plan | None = project.plan()
findings: tuple[Finding, ...] = project.findings
environment: Environment = Environment.model_validate({})
model: Model = Model.model_validate({})
other: Plan = plan([model], environment)
first: ModelPlan = other.models[0]
paths: tuple[Path, ...] = render(other, Path("out")).files
"""


def test_every_name_is_there_and_jsii_is_not_started() -> None:
    code = (
        "import sys, modelyard\n"
        "assert all(getattr(modelyard, name) for name in modelyard.__all__)\n"
        "print({'aws_cdk', 'cdk8s', 'constructs', 'jsii'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "set()"), done.stderr


def test_the_package_alone_imports_nothing() -> None:
    code = "import sys, modelyard\nprint({'pydantic', 'ruamel', 'yaml', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_name_that_is_not_there_is_refused_beside_those_that_are() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Plann'; it has Environment, Finding"):
        _ = modelyard.Plann
    assert "load_project" in dir(modelyard)


def mypy(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """mypy in strict mode, as somebody who has installed the package runs it."""
    (folder / "consumer.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            ROOT / ".mypy_cache" / "consumer",
            "consumer.py",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_mypy_reads_the_types_in_strict_mode_and_sees_a_mistake(tmp_path: Path) -> None:
    done = mypy(tmp_path, CONSUMER)
    assert done.returncode == 0, done.stdout + done.stderr
    done = mypy(tmp_path, CONSUMER + "wrong: int = other.models[0].name\n")
    assert done.returncode == 1
    assert '"str"' in done.stdout


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("modelyard.k8s.ModelRules", "modelyard.k8s.ModelMonitoring"),
        ("modelyard.k8s.write_tree", "modelyard.objects.tree.write_tree"),
        ("modelyard.aws.ModelCache", "modelyard.aws.EfsCache"),
    ],
)
def test_names_that_moved_still_work_and_say_where_they_are(name: str, now: str) -> None:
    module, _, attribute = name.rpartition(".")

    with pytest.warns(DeprecationWarning, match=f"{name} is {now} now"):
        assert callable(getattr(import_module(module), attribute))


def test_a_class_name_says_one_thing() -> None:
    """Within the product: who reads `Verdict` in a message or a traceback knows which one it is."""
    at: dict[str, list[str]] = {}
    for folder in ("constructs", "infra", "charts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    at.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")

    assert {name: places for name, places in at.items() if len(places) > 1} == {}
