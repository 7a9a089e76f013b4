"""The fetch Job's own script, with the real huggingface_hub, against a local hub."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from modelyard.objects.serving import weights
from modelyard.objects.serving.pod import server_pod
from modelyard.objects.serving.settings import model_path
from tests.contract.local_hub import LocalHub, serving
from tests.unit.given import a_model, a_plan, an_environment

COMMIT = "a" * 40
WEIGHTS = b"w" * 5000
FILES = {
    "config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "original/consolidated.pth": b"unwanted",
    "model-Q4_K_M-00001-of-00002.gguf": b"one",
    "model-Q4_K_M-00002-of-00002.gguf": b"two",
    "model-Q8_0.gguf": b"other",
}


class Hub(LocalHub):
    """The few answers of the Hugging Face API that a download needs; `acme/gated` asks for a licence,
    `acme/damaged` names another checksum, `acme/huge` more than any disk holds, and `acme/busy` is to be
    asked again."""

    asked: ClassVar[Counter[str]] = Counter()

    def answer(self, path: str) -> tuple[int, bytes, Mapping[str, str]]:
        name = next((n for n in ("gated", "damaged", "huge", "busy") if f"acme/{n}" in path), "tiny")
        if name == "gated":
            return 403, b"", {"X-Error-Code": "GatedRepo"}
        if path.startswith("/api/models/"):
            self.asked[name] += 1
            if name == "busy" and self.asked[name] < 3:
                return 429, b"", {"Retry-After": "0"}
        if path.startswith(f"/api/models/acme/{name}/tree/"):
            tree = [{"type": "file", "path": n, "size": len(b), "oid": "0" * 40} for n, b in FILES.items()]
            return 200, json.dumps(tree).encode(), {}
        if path.startswith("/api/models/acme/"):
            siblings = [self.sibling(name, n, b) for n, b in FILES.items()]
            body = {"id": f"acme/{name}", "sha": COMMIT, "siblings": siblings}
            return 200, json.dumps(body).encode(), {}
        if "/resolve/" in path:
            file = path.split("/resolve/")[1].split("/", 1)[1]
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha1(file.encode()).hexdigest()}"'}
            return 200, FILES[file], headers
        return 404, b"", {}

    @staticmethod
    def sibling(repository: str, name: str, content: bytes) -> dict[str, Any]:
        size = 1 << 62 if repository == "huge" else len(content)
        row = {"rfilename": name, "size": size, "blobId": "0" * 40}
        if name.endswith((".safetensors", ".gguf")):
            told = b"something else" if repository == "damaged" else content
            row["lfs"] = {"sha256": hashlib.sha256(told).hexdigest(), "size": size, "pointerSize": 1}
        return row


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with serving(Hub) as address:
        yield address


def fetch(hub: str, repository: str, target: Path, **more: str) -> subprocess.CompletedProcess[str]:
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
            **more,
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
    assert (target / weights.MARKER).read_text() == COMMIT
    assert {path.name for path in target.iterdir() if not path.name.startswith(".")} == {
        "config.json",
        "model.safetensors",
    }
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


def test_one_file_of_many_is_fetched_with_all_its_parts(hub: str, tmp_path: Path) -> None:
    [pattern] = weights.gguf_files("model-Q4_K_M-00001-of-00002.gguf")

    result = fetch(hub, "acme/tiny", tmp_path / "gguf", FILES=pattern)

    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "gguf").glob("*.gguf")) == [
        "model-Q4_K_M-00001-of-00002.gguf",
        "model-Q4_K_M-00002-of-00002.gguf",
    ]


def test_a_file_that_the_repository_does_not_have_is_said_at_once(hub: str, tmp_path: Path) -> None:
    result = fetch(hub, "acme/tiny", tmp_path / "gguf", FILES="model-Q9.gguf")

    assert (result.returncode, result.stdout) == (4, "no file of acme/tiny is model-Q9.gguf\n")


def test_a_busy_hub_is_asked_again_after_the_time_that_it_names(hub: str, tmp_path: Path) -> None:
    result = fetch(hub, "acme/busy", tmp_path / "busy")

    assert result.returncode == 0, result.stderr
    assert "the Hub answers 429 - again in 0 s" in result.stdout
    assert (tmp_path / "busy" / "model.safetensors").exists()


def test_a_damaged_file_never_reaches_a_server(hub: str, tmp_path: Path) -> None:
    result = fetch(hub, "acme/damaged", tmp_path / "damaged")

    assert result.returncode == 6
    assert "model.safetensors is damaged" in result.stdout
    assert not (tmp_path / "damaged").exists()
    assert not (tmp_path / "damaged.partial" / "model.safetensors").exists()


def test_what_does_not_fit_the_cache_is_not_begun(hub: str, tmp_path: Path) -> None:
    result = fetch(hub, "acme/huge", tmp_path / "huge")

    assert result.returncode == 5, result.stderr
    assert "bytes to download" in result.stdout


def test_a_server_waits_until_all_its_weights_are_marked(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    for folder in (base, adapter):
        folder.mkdir()
    (base / weights.MARKER).touch()
    [*shell, _, name] = weights.await_container([], "x")["command"]
    script = weights.AWAIT_SCRIPT.replace("sleep 10", "sleep 0.1")
    waiting = subprocess.Popen(
        [*shell, script, name, str(base / weights.MARKER), str(adapter / weights.MARKER)],
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None

    first = waiting.stdout.readline()
    (adapter / weights.MARKER).touch()
    waiting.communicate(timeout=120)  # for a script that hangs; it takes a second

    assert first == f"waiting for {adapter / weights.MARKER}\n"
    assert waiting.returncode == 0


def test_a_copy_on_the_nodes_disk_is_whole_before_it_is_marked(tmp_path: Path) -> None:
    source, local = tmp_path / "models" / "hf" / "a", tmp_path / "local"
    (source / "deep er").mkdir(parents=True)
    for name, content in {"config.json": b"{}", "deep er/model.safetensors": WEIGHTS}.items():
        (source / name).write_bytes(content)
    (source / weights.MARKER).touch()
    command = weights.copy_container([str(source)], "x", "1Gi")["command"]
    variables = {"LOCAL": str(local), "MARKER": weights.MARKER, "PATH": os.environ["PATH"]}

    for _ in range(2):  # a restarted container finds the marker
        subprocess.run(command, env=variables, check=True)

    copy = Path(f"{local}{source}")
    assert (copy / "deep er" / "model.safetensors").read_bytes() == WEIGHTS
    assert (copy / weights.MARKER).exists()


def test_a_server_waits_for_what_is_fetched_and_for_nothing_else() -> None:
    """Weights that lie in the cache already have no job, and so no marker."""
    adapter = [{"name": "legal", "uri": "hf://acme/legal"}]
    own = {"uri": "efs://house/llama", "architecture": "Qwen/Qwen3-8B"}
    waits = []
    for model, adapters in (("hf://Qwen/Qwen3-8B", adapter), (own, adapter), (own, [])):
        [planned] = a_plan(a_model(model=model, adapters=adapters)).models
        template = server_pod(
            planned, environment=an_environment(), priority_class="x", settled=False, account="x"
        )
        waits += [[c["command"][4:] for c in template["spec"].get("initContainers", [])]]

    assert waits == [
        [["/models/hf/Qwen/Qwen3-8B/main/.complete", "/models/hf/acme/legal/main/.complete"]],
        [["/models/hf/acme/legal/main/.complete"]],
        [],
    ]


def test_two_quantizations_of_a_repository_have_a_folder_each() -> None:
    """One folder would be complete with the first file, and the second would never come."""
    plans = [
        planned
        for name in ("Q4_K_M", "Q8_0")
        for planned in a_plan(
            a_model(
                name=name.lower().replace("_", "-"),
                model={
                    "uri": "hf://Qwen/Qwen3-8B-GGUF",
                    "file": f"Qwen3-8B-{name}.gguf",
                    "architecture": "Qwen/Qwen3-8B",
                },
            )
        ).models
    ]
    jobs = weights.fetch_jobs(plans, an_environment()).values()
    told = [
        {e["name"]: e.get("value") for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
        for job in jobs
    ]
    targets = [each["TARGET"] for each in told]

    assert targets == [f"/models/hf/Qwen/Qwen3-8B-GGUF/main--Qwen3-8B-{name}" for name in ("Q4_K_M", "Q8_0")]
    assert [model_path(each).rpartition("/")[0] for each in plans] == targets


VOCABULARY = b"IQ== 0\n"


@pytest.fixture
def vocabulary(tmp_path: Path) -> dict[str, str]:
    """Variables of a fetch job for a vocabulary that lies on this disk."""
    (tmp_path / "o200k_base.tiktoken").write_bytes(VOCABULARY)
    return {
        "VOCABULARY": "encodings/o200k_base.tiktoken",
        "VOCABULARY_SHA256": hashlib.sha256(VOCABULARY).hexdigest(),
        "VOCABULARY_URL": (tmp_path / "o200k_base.tiktoken").as_uri(),
    }


def test_a_vocabulary_comes_beside_the_weights(hub: str, tmp_path: Path, vocabulary: dict[str, str]) -> None:
    target = tmp_path / "hf" / "acme" / "tiny" / "main"

    result = fetch(hub, "acme/tiny", target, **vocabulary)

    assert result.returncode == 0, result.stderr
    assert (target / vocabulary["VOCABULARY"]).read_bytes() == VOCABULARY


def test_a_vocabulary_comes_beside_weights_that_are_there(tmp_path: Path, vocabulary: dict[str, str]) -> None:
    (tmp_path / weights.MARKER).touch()

    result = fetch("http://127.0.0.1:9", "acme/tiny", tmp_path, **vocabulary)

    assert result.returncode == 0, result.stderr
    assert (tmp_path / vocabulary["VOCABULARY"]).read_bytes() == VOCABULARY


def test_a_damaged_vocabulary_is_not_kept(tmp_path: Path, vocabulary: dict[str, str]) -> None:
    (tmp_path / weights.MARKER).touch()

    result = fetch(
        "http://127.0.0.1:9", "acme/tiny", tmp_path, **vocabulary | {"VOCABULARY_SHA256": "0" * 64}
    )

    assert result.returncode == 6, result.stderr
    assert not (tmp_path / vocabulary["VOCABULARY"]).exists()


def test_sglang_finds_the_vocabulary_of_gpt_oss_beside_the_weights() -> None:
    """Its library would download it, and the server may not; vLLM's has it inside."""
    found = {}
    for engine in ("sglang", "vllm"):
        plan = a_plan(a_model(model="hf://openai/gpt-oss-20b", engine={"name": engine}))
        [planned] = plan.models
        spec = server_pod(
            planned, environment=an_environment(), priority_class="x", settled=False, account="x"
        )["spec"]
        told = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
        [job] = weights.fetch_jobs(plan.models, plan.environment).values()
        asked = {e["name"] for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
        waits = spec["initContainers"][0]["command"][4:]
        found[engine] = (told.get("TIKTOKEN_ENCODINGS_BASE"), "VOCABULARY_URL" in asked, len(waits))

    folder = "/models/hf/openai/gpt-oss-20b/main/encodings"
    assert found == {"sglang": (folder, True, 2), "vllm": (None, False, 1)}


def test_scripts_hold_nothing_that_flux_would_substitute() -> None:
    assert "${" not in weights.FETCH_SCRIPT + weights.AWAIT_SCRIPT + weights.COPY_SCRIPT
