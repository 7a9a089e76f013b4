"""`modelyard render` on existing files: what it keeps, what it refuses, and what it reports."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelyard.cli.main import main
from modelyard.objects.rendering import target_contents
from modelyard.project import load_project
from modelyard.writing import MARKER, tree_files
from tests.contract.conftest import ROOT
from tests.unit.given import Answer
from tests.unit.interruption import HOWS, How, moments, stopped

MOMENTS = 20


@pytest.fixture(scope="module")
def contents() -> dict[str, Any]:
    """What a project of one model renders, once: the tests are about what becomes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        planned = load_project("dev").plan()
        assert planned is not None
        rendered, left_out = target_contents(planned, "kubernetes")
    return {"rendered": rendered, "left_out": left_out}


@pytest.fixture
def render(
    contents: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Answer]:
    """The command in this process and in a project of its own."""
    for name in ("models", "environments"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "modelyard.objects.rendering.target_contents",
        lambda plan, target, hook: (contents["rendered"], contents["left_out"]),
    )

    def run(*arguments: str, env: str = "dev") -> Answer:
        monkeypatch.setattr(sys, "argv", ["modelyard", "render", "--env", env, *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Answer(stop.value.code, captured.out, captured.err)

    return run


def without_one_model(contents: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[Path, str]:
    fewer = {path: text for path, text in contents["rendered"].items() if "gpt-oss" not in str(path)}
    monkeypatch.setattr(
        "modelyard.objects.rendering.target_contents",
        lambda plan, target, hook: (fewer, contents["left_out"]),
    )
    return fewer


def test_files_of_others_in_a_git_ops_folder_stay(
    render: Callable[..., Answer], contents: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Path("gitops/clusters/dev/flux-system/gotk-sync.yaml")
    refs = Path("gitops/clusters/dev/.git/refs/heads/main")
    for path in (mine, refs):
        path.parent.mkdir(parents=True)
        path.write_text("mine\n", encoding="utf-8")
    (refs.parent.parent / "tags").mkdir()

    first = render("--out", "gitops/clusters")
    fewer = without_one_model(contents, monkeypatch)
    second = render("--out", "gitops/clusters", "--output", "json")

    assert first.code == 0, first.err
    assert "left alone, not written by modelyard: .git, flux-system" in first.err
    assert (mine.read_text(encoding="utf-8"), refs.read_text(encoding="utf-8")) == ("mine\n", "mine\n")
    assert (refs.parent.parent / "tags").is_dir()
    document = json.loads(second.out)
    assert document["foreign"] == [".git", "flux-system"]
    assert set(document["removed"]) == {str(path) for path in contents["rendered"].keys() - fewer.keys()}
    assert set(tree_files(Path("gitops/clusters/dev"))) == {MARKER, *map(str, fewer)}


def test_deletions_are_listed(
    render: Callable[..., Answer], contents: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    render()
    fewer = without_one_model(contents, monkeypatch)

    answer = render()

    listed = {line.removeprefix("  - ") for line in answer.out.splitlines() if line.startswith("  - ")}
    assert listed == {str(path) for path in contents["rendered"].keys() - fewer.keys()}


@pytest.mark.parametrize(
    ("env", "out"),
    [("models", "."), ("environments", "."), ("charts", "."), ("dev", "models"), ("dev", "models/deep")],
)
def test_the_folders_that_people_write_are_no_place_for_a_tree(
    render: Callable[..., Answer], env: str, out: str
) -> None:
    Path("environments", f"{env}.yaml").write_bytes((ROOT / "environments" / "dev.yaml").read_bytes())
    Path("modelyard.yaml").write_text("charts: charts\n", encoding="utf-8")
    before = sorted(Path().rglob("*"))

    answer = render("--out", out, env=env)

    assert answer.code == 1
    assert answer.err.count("\n") == 1
    assert "lie in each other" in answer.err
    assert sorted(Path().rglob("*")) == before


def test_a_project_that_is_called_like_its_environment_is_not_rendered_into(
    render: Callable[..., Answer], tmp_path: Path
) -> None:
    name = tmp_path.name.replace("_", "-")[:20].strip("-")
    tmp_path.rename(tmp_path.with_name(name))
    os.chdir(tmp_path.with_name(name))
    Path("environments", f"{name}.yaml").write_bytes((ROOT / "environments" / "dev.yaml").read_bytes())

    assert "lie in each other" in render("--out", "..", env=name).err


def test_edits_are_kept_until_they_are_given_up(render: Callable[..., Answer]) -> None:
    render()
    edited = Path("dist/dev/models/kustomization.yaml")
    edited.write_text("resources: []\n", encoding="utf-8")

    refused = render()

    assert refused.code == 1
    assert "models/kustomization.yaml was edited" in refused.err
    assert edited.read_text(encoding="utf-8") == "resources: []\n"
    assert render("--overwrite").code == 0
    assert edited.read_text(encoding="utf-8") != "resources: []\n"


@pytest.mark.parametrize("out", ["file", "/proc/x", "/dev/full", "/proc"])
def test_where_nothing_can_be_written_one_line_says_so(render: Callable[..., Answer], out: str) -> None:
    Path("file").write_text("mine\n", encoding="utf-8")

    answer = render("--out", out)

    assert answer.code == 1
    [line] = [
        line for line in answer.err.splitlines() if not line.startswith((" ", "environments", "models"))
    ]
    assert line.startswith(f"modelyard: cannot write {out}/dev: ")
    assert Path("file").read_text(encoding="utf-8") == "mine\n"


@pytest.mark.parametrize("how", HOWS)
def test_at_twenty_moments_the_command_leaves_the_former_tree_or_the_new_one(
    render: Callable[..., Answer],
    contents: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    how: How,
) -> None:
    render()
    root = tmp_path / "dist" / "dev"
    former = tree_files(root)
    monkeypatch.setattr(sys, "argv", ["modelyard", "render", "--env", "dev"])
    without_one_model(contents, monkeypatch)
    shutil.copytree(root, tmp_path / "kept", symlinks=True)
    count = moments(main, tmp_path / "dist")
    new = tree_files(root)
    assert former.keys() > new.keys()

    for at in random.Random(11).sample(range(1, count + 1), MOMENTS):
        shutil.rmtree(root.parent)
        root.parent.mkdir()
        shutil.copytree(tmp_path / "kept", root)

        code = stopped(main, tmp_path / "dist", how=how, at=at)

        assert tree_files(root) in (former, new), at
        assert code in ({-9, 0} if how == "killed" else {130, 0} if how == "interrupted" else {1, 0}), at
