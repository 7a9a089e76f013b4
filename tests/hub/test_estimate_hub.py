"""`estimate --hub` with the real huggingface_hub, against a local hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from modelyard.checkpoints import architectures
from modelyard.memory.weights import parameters
from tests.contract.local_hub import LocalHub, serving

KNOWN = "Qwen/Qwen3-0.6B"
COMMIT = "b" * 40


class Hub(LocalHub):
    """The few answers that a look at a model needs. `acme/same` publishes the parameters that its config
    describes, `acme/other` twice as many, `acme/silent` says nothing of them, `acme/gated` asks for a
    licence."""

    def answer(self, path: str) -> tuple[int, bytes, Mapping[str, str]]:
        name = next((n for n in ("same", "other", "silent", "gated", "bare") if f"acme/{n}" in path), "")
        if name == "gated":
            return 403, b"", {"X-Error-Code": "GatedRepo"}
        if not name:
            return 404, b"", {"X-Error-Code": "RepoNotFound"}
        if path.startswith("/api/models/"):
            stored = round(parameters(architectures()[model()]) * (2 if name == "other" else 1))
            counts = {"parameters": {"BF16": stored}, "total": stored}
            body = {"id": f"acme/{name}", "sha": COMMIT} | (
                {} if name == "silent" else {"safetensors": counts}
            )
            return 200, json.dumps(body).encode(), {}
        if path.endswith("/config.json") and name != "bare":
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{"e" * 40}"'}
            return 200, json.dumps(architectures().config(model())).encode(), headers
        return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}


def model() -> str:
    """A small model of the table, whose config the hub has under other names."""
    return KNOWN if KNOWN in architectures() else "Qwen/Qwen3-8B"


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with serving(Hub) as address:
        yield address


def ask(hub: str, repository: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
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
        env={"PATH": os.environ["PATH"], "HF_ENDPOINT": hub, "HF_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def answer(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_model_that_the_table_lacks_is_read_from_the_hub(hub: str, tmp_path: Path) -> None:
    found = answer(ask(hub, "acme/same", tmp_path))
    of_the_table = answer(ask("http://127.0.0.1:9", model(), tmp_path))

    assert found["findings"] == []
    assert found == of_the_table


def test_another_number_of_parameters_is_a_warning(hub: str, tmp_path: Path) -> None:
    found = answer(ask(hub, "acme/other", tmp_path))

    assert [finding["code"] for finding in found["findings"]] == ["MODEL003"]
    assert found["fits"] is True


def test_without_a_count_nothing_is_compared(hub: str, tmp_path: Path) -> None:
    assert answer(ask(hub, "acme/silent", tmp_path))["findings"] == []


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
    hub: str, tmp_path: Path, repository: str, words: str
) -> None:
    result = ask(hub, repository, tmp_path)

    assert (result.returncode, result.stdout) == (1, "")
    assert words in result.stderr
    assert "--config DIR" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("offline", [True, False], ids=["offline by choice", "no connection"])
def test_without_the_hub_the_way_out_is_a_config_of_ones_own(tmp_path: Path, offline: bool) -> None:
    result = ask("http://127.0.0.1:9", "acme/same", tmp_path, **({"HF_HUB_OFFLINE": "1"} if offline else {}))

    assert result.returncode == 1
    assert "cannot be reached" in result.stderr
    assert "--config DIR" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_was_read_once_is_known_offline(hub: str, tmp_path: Path) -> None:
    ask(hub, "acme/same", tmp_path)

    assert answer(ask("http://127.0.0.1:9", "acme/same", tmp_path, HF_HUB_OFFLINE="1"))["fits"] is True
