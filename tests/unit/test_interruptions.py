"""However and whenever a writer is interrupted, the old state or the new one is left."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from modelyard.writing import NotWritten, write_file, write_tree_files
from modelyard.writing import aside as aside_module
from tests.unit.interruption import HOWS, How, moments, stopped, with_files_of

FORMER = {Path("kustomization.yaml"): "former\n", Path("a/one.yaml"): "1\n", Path("b/gone.yaml"): "2\n"}
NEW = {Path("kustomization.yaml"): "new\n", Path("a/one.yaml"): "1\n", Path("c/come.yaml"): "3\n"}
FOREIGN = {Path("a/notes.txt"): "mine\n", Path(".git/refs/heads/main"): "0123\n"}


def held(root: Path) -> dict[Path, str]:
    """Every file below `root` but the list of ours."""
    return {
        path.relative_to(root): path.read_text(encoding="utf-8")
        for path in root.rglob("*")
        if path.is_file() and path.name != ".modelyard-tree.json"
    }


def given(root: Path) -> Path:
    write_tree_files(root, FORMER)
    for path, text in FOREIGN.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def change(root: Path) -> Callable[[], object]:
    return lambda: write_tree_files(root, NEW)


@pytest.fixture(params=["exchanged", "renamed"])
def swapping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the system's exchange of two folders, and as where it has none."""
    if request.param == "renamed":
        monkeypatch.setattr(aside_module, "exchange", lambda one, other: False)
    return str(request.param)


@pytest.mark.parametrize("how", HOWS)
def test_a_tree_is_the_former_or_the_new_one_at_every_moment(tmp_path: Path, how: How, swapping: str) -> None:
    former, new = FORMER | FOREIGN, NEW | FOREIGN
    count = moments(change(given(tmp_path / "count" / "dev")), tmp_path / "count")
    seen = set()
    for at in range(1, count + 1):
        folder = tmp_path / str(at)
        root = given(folder / "dev")

        code = stopped(change(root), folder, how=how, at=at)

        if (
            swapping == "renamed" and not root.exists()
        ):  # only between two renames, and only a kill ends there
            assert how == "killed"
        else:
            state = held(root)
            assert state in (former, new), (at, state)
            seen.add("former" if state == former else "new")
            assert code != 70
            assert how != "full" or (code == 0) == (state == new)
        # Whoever comes next finishes what was begun, and nothing of it stays.
        write_tree_files(root, FORMER)
        assert held(root) == former
        assert os.listdir(folder) == ["dev"]
    assert seen == {"former", "new"}
    assert count > 20


@pytest.mark.parametrize("how", HOWS)
def test_a_tree_that_was_not_there_is_whole_or_not_there(tmp_path: Path, how: How) -> None:
    count = moments(change(tmp_path / "count" / "dev"), tmp_path / "count")
    for at in range(1, count + 1):
        root = tmp_path / str(at) / "dev"

        stopped(change(root), tmp_path / str(at), how=how, at=at)

        assert not root.exists() or held(root) == NEW
        write_tree_files(root, NEW)
        assert held(root) == NEW
        assert os.listdir(root.parent) == ["dev"]


def test_a_write_that_fails_in_the_middle_of_a_file_changes_nothing(tmp_path: Path) -> None:
    root = given(tmp_path / "dev")
    large = NEW | {Path("a/large.yaml"): "x" * 10_000}

    for size in (0, 1, 4096, 9_999):
        assert with_files_of(size, lambda: write_tree_files(root, large)) == 1
        assert held(root) == FORMER | FOREIGN
        assert os.listdir(tmp_path) == ["dev"]
    assert with_files_of(10_000, lambda: write_tree_files(root, large)) == 0


@pytest.mark.parametrize("how", HOWS)
def test_a_file_is_the_former_or_the_new_one_at_every_moment(tmp_path: Path, how: How) -> None:
    count = moments(lambda: write_file(tmp_path / "count.json", "new"), tmp_path)
    assert count > 2
    for at in range(1, count + 1):
        path = tmp_path / str(at) / "prices.json"
        write_file(path, "former")

        stopped(lambda path=path: write_file(path, "new"), tmp_path, how=how, at=at)  # type: ignore[misc]

        assert path.read_text(encoding="utf-8") in ("former", "new")
        write_file(path, "after")
        assert os.listdir(path.parent) == ["prices.json"]


def test_a_file_that_does_not_fit_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    write_file(path, "former")

    assert with_files_of(3, lambda: write_file(path, "newer")) == 1
    assert path.read_text(encoding="utf-8") == "former"
    assert os.listdir(tmp_path) == ["prices.json"]


def test_the_moments_are_real(tmp_path: Path) -> None:
    """A writer that writes in place is caught by the same harness."""
    path = tmp_path / "plain.txt"

    def in_place() -> None:
        path.write_text("former", encoding="utf-8")
        (tmp_path / "second.txt").write_text("former", encoding="utf-8")

    in_place()
    path.write_text("new", encoding="utf-8")

    assert stopped(in_place, tmp_path, how="killed", at=2) == -9
    assert (path.read_text(encoding="utf-8"), moments(in_place, tmp_path)) == ("former", 2)


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for root in (tmp_path / "file", tmp_path / "file" / "dev", Path("/proc/x/dev"), Path("/dev/full/dev")):
        with pytest.raises(NotWritten, match=r"^cannot write .*; what was there is as it was$"):
            write_tree_files(root, NEW)
        with pytest.raises(NotWritten, match=r"^cannot write .*; what was there is as it was$"):
            write_file(root / "x.json", "x")
