"""The changes of docs/explanation/architecture.md: each is made in a copy of the package, works, and touches
the files on that page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGE = "constructs/modelyard"

ENVIRONMENT = """
account: "123456789012"
region: us-east-1
availabilityZones: [us-east-1a, us-east-1b]
pools:
  gpu: {accelerator: ACCELERATOR, limit: 8}
MORE
"""
MODEL = """
model: hf://Qwen/Qwen3-8B
accelerator: ACCELERATOR
replicas: {min: 2, max: 4}
MORE
"""


def put(path: str, before: str, after: str) -> Callable[[Path], None]:
    """Write `after` in the place of `before`, which stands in the file once at the least."""

    def change(root: Path) -> None:
        text = (root / path).read_text(encoding="utf-8")
        assert before in text, f"{path} has no {before!r}"
        (root / path).write_text(text.replace(before, after, 1), encoding="utf-8")

    return change


def add(path: str, text: str) -> Callable[[Path], None]:
    """Write `text` at the end of the file, or a new one."""

    def change(root: Path) -> None:
        with (root / path).open("a", encoding="utf-8") as file:
            file.write(text)

    return change


def new_instance_type(root: Path) -> None:
    """An instance type of the family: as one that there is, with the other accelerator."""
    path = root / PACKAGE / "hardware/data/instance_types.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    like = json.dumps(table["instanceTypes"]["g6e.xlarge"])
    table["instanceTypes"]["g9x.xlarge"] = json.loads(like.replace("g6e", "g9x").replace("l40s", "z900"))
    path.write_text(json.dumps(table), encoding="utf-8")


@dataclass(frozen=True)
class Move:
    changes: tuple[Callable[[Path], None], ...]
    command: str
    says: str
    """Stands in what the command says, or in the file that it writes."""
    file: str = ""
    accelerator: str = "l40s"
    model: str = ""
    environment: str = ""


MOVES = {
    "a GPU family": Move(
        (
            put(
                f"{PACKAGE}/hardware/data/accelerators.yaml",
                "  l40s:  ",
                '  z900: {product: NVIDIA Z900, vendor: nvidia, memoryMib: 65536, usableGib: 63.0, computeCapability: "12.0",'
                " bandwidthGBs: 1600, usableSource: made up, tflops: {fp16: 500, fp8: 1000}, tflopsSource: made up}\n"
                "  l40s:  ",
            ),
            new_instance_type,
        ),
        "render",
        "- g9x.xlarge",
        file="platform/nodepool-gpu.yaml",
        accelerator="z900",
    ),
    "an alert": Move(
        (
            put(
                f"{PACKAGE}/observability/alerts.py",
                "        *_waste(chosen),\n",
                '        *_waste(chosen),\n        Alert("ModelBored", "vector(0) > 1", "5m", "warning", '
                '"bored", chosen.labels),\n',
            ),
            add("docs/runbooks/ModelBored.md", "# ModelBored\n\nGive it something to do.\n"),
        ),
        "render",
        "alert: ModelBored",
        file="models/qwen/prometheusrule-qwen.yaml",
    ),
    "an environment option": Move(
        (
            put(
                f"{PACKAGE}/spec/environment.py",
                "    install: bool = True\n",
                '    retention_days: Annotated[int, Field(ge=1)] = 15\n    """Days that samples are '
                'kept."""\n    install: bool = True\n',
            ),
            put(
                f"{PACKAGE}/objects/monitoring/metrics_volume.py",
                '"retention": _RETENTION',
                '"retention": f"{environment.monitoring.retention_days}d"',
            ),
        ),
        "render",
        "retention: 40d",
        file="addons/helmrelease-kube-prometheus-stack.yaml",
        environment="monitoring: {retentionDays: 40}",
    ),
    "a check": Move(
        (
            add(
                f"{PACKAGE}/planning/checks/model_checks.py",
                '\n\n@each_workload\ndef described(workload: Workload, environment: Environment) -> Iterator[Finding]:\n'
                '    """Models that nobody has described."""\n'
                "    if not workload.model.description:\n"
                '        yield Finding("DOC001", "nobody says what it is for", "add description", subject=workload.model.name)\n',
            ),
            put(
                f"{PACKAGE}/planning/checks/__init__.py",
                "    model_checks.references,\n",
                "    model_checks.references,\n    model_checks.described,\n",
            ),
            put(
                f"{PACKAGE}/findings/registry.py",
                "_CHECKS = (\n",
                '_CHECKS = (\n    _warning("DOC001", "A model is not described", "Nobody knows whose it '
                'is.", "Add `description`."),\n',
            ),
            add("docs/findings/DOC001.md", "written by `python -m modelyard.findings docs/findings`\n"),
        ),
        "validate",
        "DOC001 warning: nobody says what it is for",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package and the pages, as Git has them."""
    folder = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", PACKAGE, "docs/findings", "docs/runbooks"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if not listed:  # a checkout without Git
        for part in (PACKAGE, "docs"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in listed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def files_of(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def project(folder: Path, move: Move) -> Path:
    for path, text, more in (
        ("environments/lab.yaml", ENVIRONMENT, move.environment),
        ("models/qwen.yaml", MODEL, move.model),
    ):
        (folder / path).parent.mkdir(parents=True)
        filled = text.replace("ACCELERATOR", move.accelerator).replace("MORE", more)
        (folder / path).write_text(filled, encoding="utf-8")
    return folder


def run(package: Path, folder: Path, command: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MODELYARD_")}
    code = "import sys; from modelyard.cli.main import main; sys.argv = ['modelyard', *sys.argv[1:]]; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--env", "lab"],
        cwd=folder,
        env=env
        | {"PYTHONPATH": str(package / "constructs"), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def named(title: str) -> set[str]:
    """The files that the page names for a move."""
    text = PAGE.read_text(encoding="utf-8")
    match = re.search(rf"^\| {re.escape(title)} \|(?P<files>[^|]*)\|", text, re.MULTILINE)
    assert match, f"{PAGE.name} has no row for {title}"
    return set(re.findall(r"`([^`]+)`", match["files"]))


@pytest.mark.parametrize("title", MOVES)
def test_a_move_touches_the_files_that_the_page_names_and_works(
    title: str, source: Path, tmp_path: Path
) -> None:
    move = MOVES[title]
    package = tmp_path / "package"
    shutil.copytree(source, package)
    before = files_of(package)
    folder = project(tmp_path / "project", move)

    without = run(package, folder, move.command)
    said = (
        (folder / "dist" / "lab" / move.file).read_text("utf-8")
        if move.file and (folder / "dist").exists()
        else without
    )
    assert move.says not in said

    for change in move.changes:
        change(package)
    after = files_of(package)
    touched = {name for name in after if before.get(name) != after[name]}
    assert {name.removeprefix(f"{PACKAGE}/") for name in touched} == named(title)

    answer = run(package, folder, move.command)
    said = (folder / "dist" / "lab" / move.file).read_text("utf-8") if move.file else answer
    assert move.says in said, answer


def test_the_move_of_an_engine_is_a_folder_of_another_package() -> None:
    assert named("an engine") == {
        "PACKAGE/__init__.py",
        "PACKAGE/releases/VERSION.json",
        "PACKAGE/metrics.yaml",
    }
    fixture = ROOT / "tests" / "fixtures" / "echo_engine" / "modelyard_echo"
    found = {
        str(path.relative_to(fixture))
        for path in fixture.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert found == {"__init__.py", "releases/1.0.json", "metrics.yaml"}
