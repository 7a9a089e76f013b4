"""`estimate --hub` with the real huggingface_hub in a process of its own: its variables apply."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from tests.hub.fake_hub import FakeHub, hub, text_file
from tests.hub.repositories import SMALL, small, small_files

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def answering() -> Iterator[str]:
    """The address of a Hub. `acme/same` has the tensors that its config describes, `acme/other` more, and
    `acme/silent` none."""
    with hub() as fake:
        fill(fake)
        yield fake.address


def fill(fake: FakeHub) -> None:
    config = text_file(architectures().config(SMALL))
    fake.repositories |= {
        "acme/same": small(),
        "acme/other": small(files=small_files(intermediate_size=1536)),
        "acme/silent": small(files={"config.json": config}),
        "acme/gated": small(gated=True),
        "acme/bare": small(files={"README.md": text_file(b"")}),
    }


def ask(address: str, repository: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [
        "estimate",
        "--accelerator",
        "l40s",
        "--max-model-len",
        "8192",
        "-o",
        "json",
        "--hub",
        "--model",
    ]
    return subprocess.run(
        [sys.executable, "-c", "from modelyard.cli.main import main; main()", *command, repository],
        env={"PATH": os.environ["PATH"], "HF_ENDPOINT": address, "HF_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_model_that_the_table_lacks_is_read_from_the_hub(answering: str, tmp_path: Path) -> None:
    found = answer(ask(answering, "acme/same", tmp_path))
    of_the_table = answer(ask(NOWHERE, SMALL, tmp_path))

    assert found["findings"] == []
    assert found == of_the_table


def test_another_number_of_parameters_is_a_warning(answering: str, tmp_path: Path) -> None:
    found = answer(ask(answering, "acme/other", tmp_path))

    assert [finding["code"] for finding in found["findings"]] == ["MODEL003"]
    assert found["fits"] is True


def test_without_a_count_nothing_is_compared(answering: str, tmp_path: Path) -> None:
    assert answer(ask(answering, "acme/silent", tmp_path))["findings"] == []


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("acme/gated", "HF_TOKEN"),
        ("acme/nowhere", "the Hub has no acme/nowhere"),
        ("acme/bare", "has no config.json"),
        ("not a repository", "cannot be had"),
    ],
)
def test_what_the_hub_refuses_ends_with_the_way_out(
    answering: str, tmp_path: Path, repository: str, words: str
) -> None:
    result = ask(answering, repository, tmp_path)

    assert (result.returncode, result.stdout) == (1, "")
    assert words in result.stderr
    assert "--config DIR" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("offline", [True, False], ids=["offline by choice", "no connection"])
def test_without_the_hub_the_way_out_is_a_config_of_ones_own(tmp_path: Path, offline: bool) -> None:
    result = ask(NOWHERE, "acme/same", tmp_path, **({"HF_HUB_OFFLINE": "1"} if offline else {}))

    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert "--config DIR" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_was_read_once_is_known_offline(answering: str, tmp_path: Path) -> None:
    ask(answering, "acme/same", tmp_path)

    assert answer(ask(NOWHERE, "acme/same", tmp_path, HF_HUB_OFFLINE="1"))["fits"] is True
