"""`modelyard validate` checks patched objects like `render`: what it accepts can be rendered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.spec.operation import PATCHABLE
from tests.contract.conftest import PLATFORM_NAMES, ROOT, SHIPPED, Tree, read_tree

MODELYARD = Path(sys.executable).with_name("modelyard")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MODELYARD, *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "MODELYARD_CRDS"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One environment, and no charts of its own."""
    for name in ("models", "environments"):
        (tmp_path / name).mkdir()
    (tmp_path / "environments" / "dev.yaml").write_bytes((ROOT / "environments" / "dev.yaml").read_bytes())
    return tmp_path


def patched(project: Path, kind: str, merge: dict[str, Any]) -> None:
    lines = {
        "model": "hf://Qwen/Qwen3-32B-FP8",
        "accelerator": "l40s",
        "replicas": 2,
        "patches": [{"kind": kind, "merge": merge}],
    }
    text = json.dumps(lines)
    # A file may not be as long as all its annotations may be together; an alias repeats one.
    text = text.replace('"LONG"', f"&long {'y' * 140_000}", 1).replace('"LONG"', "*long")
    (project / "models" / "qwen.yaml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "merge", "said"),
    [
        ("ScaledObject", {"spec": {"maxReplicaCount": 9}}, "patch for kind 'ScaledObject'; this model renders"),
        ("Deployment", {"metadata": {"annotations": {"x": "LONG", "y": "LONG"}}}, "annotations have"),
        ("Deployment", {"spec": {"template": {"metadata": {"labels": None}}}}, "has no spec.template.metadata.labels"),
        ("Service", {"metadata": {"labels": {"a b": "c"}}}, "label 'a b' is no key"),
    ],
)  # fmt: skip
def test_what_would_not_render_is_not_valid(
    project: Path, kind: str, merge: dict[str, Any], said: str
) -> None:
    patched(project, kind, merge)

    validated = run(project, "validate", "-e", "dev")

    assert validated.returncode == 1
    assert said in validated.stderr
    assert "models/qwen.yaml:1:" in validated.stderr
    assert run(project, "render", "-e", "dev").returncode == 1
    assert not (project / "dist").exists()


def test_a_patch_that_renders_is_valid(project: Path) -> None:
    patched(project, "Deployment", {"metadata": {"annotations": {"a.example/note": "checked"}}})

    assert run(project, "validate", "-e", "dev").returncode == 0
    assert run(project, "render", "-e", "dev").returncode == 0


def test_a_patch_of_a_kind_that_the_model_does_not_render_is_refused_by_both(project: Path) -> None:
    patched(project, "ScaledObject", {"spec": {"maxReplicaCount": 9}})

    for command in ("validate", "render"):
        answer = run(project, command, "-e", "dev")
        assert answer.returncode == 1
        assert "K8S001" in answer.stderr + answer.stdout
        assert "ScaledObject" in answer.stderr + answer.stdout


def test_charts_that_cannot_be_loaded_are_named_by_both(project: Path) -> None:
    patched(project, "Service", {"metadata": {"labels": {"tier": "gold"}}})
    (project / "modelyard.yaml").write_text("charts: objects\n", encoding="utf-8")

    for command in ("validate", "render"):
        answer = run(project, command, "-e", "dev")
        assert answer.returncode == 1
        assert "charts: there is no objects; name a Python package or file" in answer.stderr


def test_kinds_that_can_be_patched_are_those_that_models_render(tree: Callable[[str], Tree]) -> None:
    kinds = {
        item["kind"]
        for name in (*SHIPPED, "argocd", "serving", *PLATFORM_NAMES)
        for folder in (tree(name).folder / "models").glob("[!_]*/")
        for item in read_tree(folder)
    }

    assert kinds == set(PATCHABLE)
