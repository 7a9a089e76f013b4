"""The fetch job's own script, with the real huggingface_hub, against a hub on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from modelyard.k8s import weights
from modelyard.k8s.server_pod import server_pod
from tests.contract.local_hub import LocalHub, serving
from tests.unit.given import a_model, a_plan

COMMIT = "a" * 40
FILES = {"config.json": b"{}", "model.safetensors": b"w" * 5000, "original/consolidated.pth": b"unwanted"}


class Hub(LocalHub):
    """The few answers of the Hugging Face API that a download needs; `acme/gated` asks for a licence."""

    def answer(self, path: str) -> tuple[int, bytes, Mapping[str, str]]:
        if "gated" in path:
            return 403, b"", {"X-Error-Code": "GatedRepo"}
        if path.startswith("/api/models/acme/tiny/tree/"):
            tree = [{"type": "file", "path": n, "size": len(b), "oid": "0" * 40} for n, b in FILES.items()]
            return 200, json.dumps(tree).encode(), {}
        if path.startswith("/api/models/acme/tiny"):
            siblings = [{"rfilename": n, "size": len(b), "blobId": "0" * 40} for n, b in FILES.items()]
            body = {"id": "acme/tiny", "sha": COMMIT, "siblings": siblings}
            return 200, json.dumps(body).encode(), {}
        if "/resolve/" in path:
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{"e" * 40}"'}
            return 200, FILES[path.split("/resolve/")[1].split("/", 1)[1]], headers
        return 404, b"", {}


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with serving(Hub) as address:
        yield address


def fetch(hub: str, repository: str, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", weights.FETCH_SCRIPT],
        env={
            "PATH": os.environ["PATH"],
            "HF_ENDPOINT": hub,
            "HF_HOME": str(target.parent / "home"),
            "HUB": "nothing to install",
            "MARKER": weights.MARKER,
            "REPOSITORY": repository,
            "REVISION": "main",
            "TARGET": str(target),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_repository_appears_whole_and_marked(hub: str, tmp_path: Path) -> None:
    target = tmp_path / "hf" / "acme" / "tiny" / "main"

    result = fetch(hub, "acme/tiny", target)

    assert result.returncode == 0, result.stderr
    assert (target / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert (target / weights.MARKER).read_text() == "main"
    assert not (target / "original").exists()
    assert not target.with_name("main.partial").exists()


def test_a_second_run_finds_the_marker_and_asks_nobody(tmp_path: Path) -> None:
    (tmp_path / weights.MARKER).touch()

    result = fetch("http://127.0.0.1:9", "acme/tiny", tmp_path)

    assert result.returncode == 0
    assert "is complete" in result.stdout


def test_a_gated_repository_ends_with_its_own_code_and_the_page_of_the_licence(
    hub: str, tmp_path: Path
) -> None:
    result = fetch(hub, "acme/gated", tmp_path / "gated")

    assert result.returncode == 3, result.stderr
    assert "https://huggingface.co/acme/gated" in result.stdout
    assert not (tmp_path / "gated").exists()


def test_a_server_waits_until_all_its_weights_are_marked(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    for folder in (base, adapter):
        folder.mkdir()
    (base / weights.MARKER).touch()
    script = weights.AWAIT_SCRIPT.replace("time.sleep(10)", "time.sleep(0.1)")
    waiting = subprocess.Popen(
        [sys.executable, "-c", script],
        env={"MARKER": weights.MARKER, "TARGETS": f"{base},{adapter}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None

    first = waiting.stdout.readline()
    (adapter / weights.MARKER).touch()
    waiting.communicate(timeout=30)

    assert first == f"waiting for {adapter}/{weights.MARKER}\n"
    assert waiting.returncode == 0


def test_a_server_waits_for_what_is_fetched_and_for_nothing_else() -> None:
    """Weights that lie in the cache already have no job, and so no marker."""
    adapter = [{"name": "legal", "uri": "hf://acme/legal"}]
    own = {"uri": "efs://house/llama", "architecture": "Qwen/Qwen3-8B"}
    waits = []
    for model, adapters in (("hf://Qwen/Qwen3-8B", adapter), (own, adapter), (own, [])):
        [planned] = a_plan(a_model(model=model, adapters=adapters)).models
        template = server_pod(planned, environment="lab", priority_class="x", do_not_disrupt=False)
        waits += [
            [
                e["value"]
                for c in template["spec"].get("initContainers", [])
                for e in c["env"]
                if e["name"] == "TARGETS"
            ]
        ]

    assert waits == [
        ["/models/hf/Qwen/Qwen3-8B/main,/models/hf/acme/legal/main"],
        ["/models/hf/acme/legal/main"],
        [],
    ]


def test_scripts_hold_nothing_that_flux_would_substitute() -> None:
    assert "${" not in weights.FETCH_SCRIPT + weights.AWAIT_SCRIPT
