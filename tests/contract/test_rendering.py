"""The rendered tree: the same bytes every time, one object per file, quoted YAML strings, valid for
kustomize."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.objects.tree import write_tree
from modelyard.objects.yaml_text import to_yaml
from modelyard.writing import MARKER
from tests.contract.conftest import ROOT, Tree, folders_of

MODELYARD = Path(sys.executable).with_name("modelyard")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.yaml"))}


def modelyard(*args: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MODELYARD, *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", ["prod", "argocd"])
def test_two_renderings_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    """In two processes whose sets and hashes are ordered differently."""
    models, environments = map(str, folders_of(name))

    for seed in ("1", "2"):
        out = str(tmp_path / seed)
        run = modelyard(
            "render", "-e", name, "--models", models, "--environments", environments, "--out", out, seed=seed
        )
        assert run.returncode == 0, run.stderr

    first = contents(tmp_path / "1" / name)
    assert first == contents(tmp_path / "2" / name)
    assert len(first) > 40


def test_the_exit_code_tells_whether_anything_changed(tmp_path: Path) -> None:
    render = ["render", "-e", "dev", "--out", str(tmp_path), "--detailed-exitcode", "--output", "json"]

    first, second = modelyard(*render), modelyard(*render)

    assert (first.returncode, second.returncode) == (2, 0)
    assert json.loads(first.stdout)["changed"] == json.loads(first.stdout)["files"]
    document = json.loads(second.stdout)
    assert (document["schemaVersion"], document["kind"]) == (1, "Rendering")
    assert document["changed"] == document["removed"] == []


def test_what_does_not_plan_is_not_rendered(tmp_path: Path) -> None:
    environments = str(ROOT / "tests" / "fixtures" / "environments")

    run = modelyard("render", "-e", "lab", "--environments", environments, "--out", str(tmp_path))

    assert run.returncode == 1
    assert "CAP003 error" in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_one_object_a_file_in_sorted_keys(each: Tree) -> None:
    for path in each.folder.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
        assert len(documents) == 1
        assert list(documents[0]) == sorted(documents[0])
        assert text.endswith("\n")


def test_kustomizations_name_every_file_and_nothing_else(each: Tree) -> None:
    for folder in (each.folder, *(path for path in each.folder.rglob("*") if path.is_dir())):
        kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
        assert set(kustomization["resources"]) == {p.name for p in folder.iterdir()} - {
            "kustomization.yaml",
            MARKER,
        }


@pytest.mark.parametrize(
    "word",
    [
        "no",
        "on",
        "Yes",
        "y",
        "off",
        "null",
        "~",
        "1:30",
        "0777",
        "1e3",
        "2026-01-01",
        "1_000",
        "true",
        "=",
        "1.0",
    ],
)
def test_words_stay_words_for_a_reader_of_yaml_1_1(word: str) -> None:
    """`engine.env: {FLAG: "on"}` must not reach the API server as a truth."""
    item = {"metadata": {"labels": {word: word}}, "list": [word]}

    assert yaml.safe_load(to_yaml(item)) == item


def object_of(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def test_files_that_nothing_needs_are_removed(tmp_path: Path) -> None:
    write_tree(tmp_path, {"models/one": [object_of("a")], "models/two": [object_of("b")]})

    result = write_tree(tmp_path, {"models/one": [object_of("a", data={"k": "v"})]})

    assert [str(path) for path in result.changed] == [
        "models/kustomization.yaml",
        "models/one/configmap-a.yaml",
    ]
    assert [str(path) for path in result.removed] == [
        "models/two/configmap-b.yaml",
        "models/two/kustomization.yaml",
    ]
    assert not (tmp_path / "models" / "two").exists()


def test_two_objects_never_share_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"configmap-a\.yaml"):
        write_tree(tmp_path, {"models": [object_of("a"), object_of("a")]})
