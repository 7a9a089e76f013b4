"""Starting and stopping, without a server: what is refused and what is printed."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from modelyard.localcloud import lifecycle
from modelyard.localcloud.deployment import ToolMissing
from modelyard.localcloud.lifecycle import ServerFailed
from modelyard.localcloud.server import RECORD


def test_a_missing_interpreter_names_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="uv sync --only-group localcloud"):
        lifecycle.find_python(tmp_path)


def test_nothing_runs_in_an_absent_folder(tmp_path: Path) -> None:
    state = tmp_path / "absent"

    assert lifecycle.running(state) is None
    assert not lifecycle.stop(state)


def test_the_pid_of_another_process_is_not_the_server(tmp_path: Path) -> None:
    """A pid is given to somebody else sooner or later; this test's own must survive the stop."""
    (tmp_path / lifecycle.MARKER).touch()
    (tmp_path / RECORD).write_text(json.dumps({"pid": os.getpid(), "port": 1}))

    assert lifecycle.running(tmp_path) is None
    assert not lifecycle.stop(tmp_path)


def test_a_folder_with_something_else_in_it_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    with pytest.raises(ServerFailed, match="not the state of an embedded AWS"):
        lifecycle.stop(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


def test_a_folder_with_a_log_alone_is_not_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / lifecycle.LOG).write_text("of another server\n")

    with pytest.raises(ServerFailed, match="delete it yourself"):
        lifecycle.stop(tmp_path)
    with pytest.raises(ServerFailed, match="delete it yourself"):
        lifecycle.start(tmp_path, python=Path(sys.executable))
    assert (tmp_path / lifecycle.LOG).read_text() == "of another server\n"


def test_an_empty_folder_of_somebody_else_stays(tmp_path: Path) -> None:
    lifecycle.stop(tmp_path)

    assert tmp_path.is_dir()


def test_what_others_put_beside_the_state_stays(tmp_path: Path) -> None:
    state = tmp_path / lifecycle.HOME / "local"
    (state / "s3" / "bucket").mkdir(parents=True)
    for name in (lifecycle.MARKER, lifecycle.LOG, "journal.jsonl", "notes.txt"):
        (state / name).touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").touch()
    (state / "tmp").symlink_to(elsewhere)

    lifecycle.stop(state)

    assert os.listdir(state) == ["notes.txt"]
    assert (elsewhere / "thesis.tex").exists()


def test_a_server_that_dies_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text(f"#!{sys.executable}\nraise SystemExit('no ministack here')\n")
    broken.chmod(broken.stat().st_mode | stat.S_IEXEC)

    with pytest.raises(ServerFailed, match=r"stopped with status 1; the end of .*\nno ministack here"):
        lifecycle.start(tmp_path / "state", python=broken)
