"""Our tree among other people's files: what is replaced, what is deleted, and what is left alone."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from modelyard.writing import MARKER, NotWritten, Ownership, tree_files, write_file, write_tree_files
from modelyard.writing import aside as aside_module
from modelyard.writing import lock as lock_module
from modelyard.writing.exchange import exchange
from modelyard.writing.lock import locked

ONE, TWO, THREE = Path("models/one.yaml"), Path("models/two.yaml"), Path("kustomization.yaml")
FORMER = {ONE: "1\n", TWO: "2\n", THREE: "all\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree of ours."""
    path = tmp_path / "dist" / "dev"
    write_tree_files(path, FORMER)
    return path


def put(path: Path, text: str = "mine\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


class TestForeignFiles:
    def test_they_stay_where_they_are_and_are_named(self, root: Path) -> None:
        mine = [
            put(root / name)
            for name in ("models/mine.yaml", "flux-system/gotk.yaml", ".git/refs/x", "README")
        ]

        result = write_tree_files(root, {THREE: "none\n"})

        assert [path.read_text(encoding="utf-8") for path in mine] == ["mine\n"] * 4
        assert result.removed == (ONE, TWO)
        assert result.foreign == (Path(".git"), Path("README"), Path("flux-system"), Path("models/mine.yaml"))

    def test_empty_folders_links_and_modes_stay(self, root: Path, tmp_path: Path) -> None:
        (root / "empty" / "deep").mkdir(parents=True)
        (root / "link").symlink_to(tmp_path / "nowhere")
        script = put(root / "run.sh")
        script.chmod(0o750)

        write_tree_files(root, {THREE: "none\n"})

        assert (root / "empty" / "deep").is_dir()
        assert os.readlink(root / "link") == str(tmp_path / "nowhere")
        assert script.stat().st_mode & 0o777 == 0o750

    def test_one_in_the_place_of_ours_is_refused_and_everything_stays(self, tmp_path: Path) -> None:
        mine = put(tmp_path / "dev" / ONE)

        with pytest.raises(NotWritten, match=r"models/one\.yaml was not written by modelyard"):
            write_tree_files(tmp_path / "dev", FORMER)

        assert mine.read_text(encoding="utf-8") == "mine\n"
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]

    def test_one_that_says_the_same_becomes_ours(self, tmp_path: Path) -> None:
        """A tree of an earlier release has no list."""
        for path, text in FORMER.items():
            put(tmp_path / "dev" / path, text)

        assert write_tree_files(tmp_path / "dev", FORMER).changed == ()
        assert write_tree_files(tmp_path / "dev", {THREE: "none\n"}).removed == (ONE, TWO)

    def test_overwrite_replaces_it(self, tmp_path: Path) -> None:
        put(tmp_path / "dev" / ONE)

        result = write_tree_files(tmp_path / "dev", FORMER, overwrite=True)

        assert result.changed == (ONE, TWO, THREE)
        assert (tmp_path / "dev" / ONE).read_text(encoding="utf-8") == "1\n"
        assert os.listdir(tmp_path) == ["dev"]

    @pytest.mark.parametrize("overwrite", [True, False])
    def test_folders_and_links_in_the_way_are_never_replaced(self, tmp_path: Path, overwrite: bool) -> None:
        target = put(tmp_path / "elsewhere" / "one.yaml")
        (tmp_path / "dev" / THREE).mkdir(parents=True)
        (tmp_path / "dev" / "models").symlink_to(tmp_path / "elsewhere")

        with pytest.raises(NotWritten) as refusal:
            write_tree_files(tmp_path / "dev", FORMER, overwrite=overwrite)

        assert "kustomization.yaml is a folder" in str(refusal.value)
        assert "models is not a regular file" in str(refusal.value)
        assert target.read_text(encoding="utf-8") == "mine\n"

    def test_files_that_come_while_the_tree_changes_stay(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def late(one: Path, other: Path) -> bool:
            put(root / "late" / "mine.yaml")
            return exchange(one, other)

        monkeypatch.setattr(aside_module, "exchange", late)
        write_tree_files(root, {THREE: "none\n"})

        assert (root / "late" / "mine.yaml").read_text(encoding="utf-8") == "mine\n"

    def test_a_read_only_folder_of_somebody_else_is_carried_over_every_time(self, root: Path) -> None:
        """As those of Go's modules are; only who is not root is stopped by one."""
        mine = put(root / "vendor" / "mine.go")
        mine.parent.chmod(0o555)

        for number in range(3):
            write_tree_files(root, {THREE: f"{number}\n"})

        assert mine.read_text(encoding="utf-8") == "mine\n"
        assert mine.parent.stat().st_mode & 0o777 == 0o555
        assert os.listdir(root.parent) == ["dev"]

    def test_a_link_in_the_place_of_the_draft_is_refused_and_not_followed(
        self, root: Path, tmp_path: Path
    ) -> None:
        mine = put(tmp_path / "mine" / "tree" / "thesis.tex")
        put(tmp_path / "mine" / "unfinished")
        (root.parent / ".dev.modelyard-draft").symlink_to(tmp_path / "mine")

        with pytest.raises(NotWritten, match="is a link that modelyard did not make"):
            write_tree_files(root, {THREE: "none\n"})

        assert mine.read_text(encoding="utf-8") == "mine\n"
        assert (root / ONE).exists()

    def test_a_mount_point_is_refused_with_the_way_out(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Path, "is_mount", lambda path: path == root)

        with pytest.raises(NotWritten, match="is a mount point"):
            write_tree_files(root, {THREE: "none\n"})


class TestEditedFiles:
    @pytest.mark.parametrize("content", [{ONE: "new\n", THREE: "all\n"}, {THREE: "none\n"}])
    def test_one_that_is_edited_while_the_tree_changes_is_not_lost(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, content: dict[Path, str]
    ) -> None:
        def late(one: Path, other: Path) -> bool:
            put(root / ONE, "edited\n")
            return exchange(one, other)

        monkeypatch.setattr(aside_module, "exchange", late)
        write_tree_files(root, content)
        monkeypatch.undo()

        texts = {path.read_text(encoding="utf-8") for path in root.parent.rglob("one.yaml")}
        assert "edited\n" in texts

    @pytest.mark.parametrize("content", [{ONE: "new\n"}, {THREE: "all\n"}])
    def test_one_is_neither_replaced_nor_removed(self, root: Path, content: dict[Path, str]) -> None:
        put(root / ONE, "edited\n")

        with pytest.raises(NotWritten, match=r"models/one\.yaml was edited") as refusal:
            write_tree_files(root, content)

        assert "--overwrite" in str(refusal.value)
        assert (root / ONE).read_text(encoding="utf-8") == "edited\n"
        assert (root / TWO).exists()
        write_tree_files(root, content, overwrite=True)
        assert {path for path in FORMER if (root / path).exists()} == set(content)

    def test_an_edit_to_what_it_would_become_is_no_conflict(self, root: Path) -> None:
        put(root / ONE, "new\n")

        assert write_tree_files(root, FORMER | {ONE: "new\n"}).changed == ()

    def test_one_that_was_deleted_comes_back(self, root: Path) -> None:
        (root / ONE).unlink()

        assert write_tree_files(root, FORMER).changed == (ONE,)

    def test_all_are_named_up_to_ten(self, root: Path) -> None:
        content = {Path(f"{n:02}.yaml"): "x\n" for n in range(12)}
        for path in content:
            put(root / path)

        with pytest.raises(NotWritten) as refusal:
            write_tree_files(root, content)

        assert "09.yaml" in str(refusal.value)
        assert "10.yaml" not in str(refusal.value)
        assert "and 2 more" in str(refusal.value)


class TestTheList:
    def test_it_has_every_file_with_its_hash_and_is_the_same_each_time(self, root: Path) -> None:
        text = (root / MARKER).read_bytes()
        document = json.loads(text)

        assert list(document["files"]) == ["kustomization.yaml", "models/one.yaml", "models/two.yaml"]
        assert Ownership.from_json(text).to_json() == text
        write_tree_files(root, FORMER)
        assert (root / MARKER).read_bytes() == text

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"\xff",
            b"[]",
            b"[" * 100_000,
            b'{"version": 2, "files": {}}',
            b'{"version": 1, "files": {"../../x": "' + b"0" * 64 + b'"}}',
            b'{"version": 1, "files": {"/etc/passwd": "' + b"0" * 64 + b'"}}',
            b'{"version": 1, "files": {"a": 1}}',
        ],
    )
    def test_one_that_cannot_be_read_stops_everything(self, root: Path, text: bytes) -> None:
        (root / MARKER).write_bytes(text)

        with pytest.raises(NotWritten, match=r"\.modelyard-tree\.json cannot be read"):
            write_tree_files(root, {THREE: "none\n"})
        assert (root / ONE).exists()

    def test_what_is_delivered_is_what_it_names(self, root: Path, tmp_path: Path) -> None:
        put(root / "models" / "mine.yaml")

        assert set(tree_files(root)) == {MARKER, *(path.as_posix() for path in FORMER)}
        assert tree_files(tmp_path / "nowhere") == {}
        (root / MARKER).unlink()
        assert "models/mine.yaml" in tree_files(root)


class TestTwoAtOnce:
    def test_the_second_waits_for_the_first(self, root: Path) -> None:
        done = []
        with locked(root.parent):
            second = threading.Thread(target=lambda: done.append(write_tree_files(root, {THREE: "none\n"})))
            second.start()
            second.join(0.2)
            assert done == []
        second.join()

        assert len(done) == 1

    def test_it_does_not_wait_for_ever(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lock_module, "PATIENCE_S", 0)

        with locked(root.parent), pytest.raises(NotWritten, match="another modelyard"):
            write_tree_files(root, {THREE: "none\n"})
        assert (root / ONE).exists()


def test_a_file_is_not_written_through_a_link_in_the_place_of_its_draft(tmp_path: Path) -> None:
    mine = put(tmp_path / "mine.txt")
    (tmp_path / ".prices.json.modelyard-draft").symlink_to(mine)

    write_file(tmp_path / "prices.json", "new")

    assert mine.read_text(encoding="utf-8") == "mine\n"
    assert not (tmp_path / "prices.json").is_symlink()


def test_what_does_not_change_is_not_touched(root: Path) -> None:
    before = (root / ONE).stat()

    result = write_tree_files(root, FORMER | {TWO: "new\n"})

    assert result.changed == (TWO,)
    assert (root / ONE).stat().st_ino == before.st_ino
    assert (root / ONE).stat().st_mtime_ns == before.st_mtime_ns
