"""`make cluster`, as a person meets it: the tutorial's commands, and no process is left after Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from modelyard.localcloud import lifecycle
from tests.cluster.programs import BUILT, ROOT, until
from tests.e2e.test_docs import blocks

PAGE = ROOT / "docs" / "tutorials" / "a-cluster-without-aws.md"
MODELS = ("llama-3-1-8b", "qwen3-32b-fp8")
"""Those of the page; the others would only take time."""

_COPIED = ("charts", "constructs", "environments", "infra", "models", "tests", ".ci")
_FILES = (
    "app.py",
    "cdk.json",
    "modelyard.yaml",
    "Makefile",
    "pyproject.toml",
    "uv.lock",
    "package-lock.json",
)
_LINKED = (".venv", ".venv-localcloud", ".venv-scanners", "node_modules")
_LAST = "Ctrl-C ends all of it"


@dataclass(frozen=True)
class Project:
    """A copy of the repository, in which everything is installed."""

    folder: Path

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """`script` in a new shell, which has met the cluster."""
        # Nothing is installed: the copy's files are newer than what is.
        script = script.replace("make ", "make --old-file=install ")
        meet = "if [ -f .tools/clusters/local/env.sh ]; then . .tools/clusters/local/env.sh; fi\n"
        path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", f"set -eu\n{meet}{script}"],
            cwd=self.folder,
            env={"HOME": os.environ["HOME"], "PATH": path, "CDK_VALIDATION": "false"},
            capture_output=True,
            text=True,
            check=False,
        )

    def processes(self) -> list[str]:
        """Command lines of everything that runs from this folder, but for the embedded AWS."""
        found = []
        for each in Path("/proc").iterdir():
            try:
                line = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                here = Path(os.readlink(each / "cwd")).is_relative_to(self.folder)
            except (OSError, NotADirectoryError):
                continue
            if each.name.isdigit() and (here or str(self.folder) in line) and "localcloud" not in line:
                found.append(line)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    if not BUILT.is_file():
        pytest.skip("no control plane is built: make e2e")
    folder = tmp_path / "project"
    folder.mkdir()
    for part in _COPIED:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in _FILES:
        shutil.copy(ROOT / part, folder)
    for part in _LINKED:
        (folder / part).symlink_to(ROOT / part)
    for path in (folder / "models").glob("*.yaml"):
        if path.stem not in MODELS:
            path.unlink()
    (folder / ".tools").mkdir()
    shutil.copy(BUILT, folder / ".tools")
    try:
        yield Project(folder)
    finally:
        lifecycle.stop(folder / lifecycle.HOME / "local")


@contextmanager
def started(project: Project, command: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a session of its own, as in another terminal, once it says that all is up."""
    said = project.folder / "said.txt"
    with said.open("w") as output:
        process = subprocess.Popen(
            ["bash", "-c", command.replace("make ", "make --old-file=install ")],
            cwd=project.folder,
            env={**os.environ, "CDK_VALIDATION": "false"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )

    def up() -> bool:
        text = said.read_text(encoding="utf-8")
        assert process.poll() is None, text
        return _LAST in text

    try:
        until(up, "the cluster", seconds=600, lacking=lambda: [said.read_text(encoding="utf-8")])
        yield process
    finally:
        if process.poll() is None:
            _interrupt(process)


def _interrupt(process: subprocess.Popen[str]) -> None:
    """As a terminal does on Ctrl-C: everything in it is told."""
    os.killpg(process.pid, signal.SIGINT)
    process.wait(120)


def smoked_at(project: Project, port: str, script: str) -> subprocess.CompletedProcess[str]:
    """`modelyard smoke` as the page has it, once the Service leads to this port of its pods."""
    service = "qwen3-32b-fp8"
    patch = f'[{{"op": "replace", "path": "/spec/ports/0/targetPort", "value": {port}}}]'
    answers = "until" if port == '"http"' else "while"
    address, url, *_, smoke = script.splitlines()
    return project.shell(
        f"kubectl -n models patch service {service} --type=json --patch '{patch}'\n{address}\n{url}\n"
        f"{answers} curl --silent --output /dev/null $url/models; do :; done\n{smoke}"
    )


def test_the_page_leads_from_a_clone_to_an_answer_and_back(project: Project) -> None:
    """On the way a mistake is planted: a Service that leads to a port on which nobody listens."""
    start, look, ask, verify, take_away, down = (block.script for block in blocks(PAGE))
    said = []
    with started(project, start) as process:
        text = (project.folder / "said.txt").read_text(encoding="utf-8")
        assert max(map(len, text.splitlines())) <= 100
        assert len(text.split("\n\n", 1)[1].splitlines()) <= 24
        for script in (look, ask, verify):
            said.append(done(project, script))
        mistaken = smoked_at(project, "9", ask)
        mended = smoked_at(project, '"http"', ask)
        done(project, take_away)
        assert project.processes() != []
        _interrupt(process)

    looked, asked, verified = said
    assert "Running" in looked
    assert "qwen3-32b-fp8 is played here" in asked
    assert "ok: 12 checks passed" in asked
    assert "2 of 2 models answered" in verified
    assert mistaken.returncode == 1, mistaken.stderr
    assert "does not answer" in mistaken.stdout
    assert mended.returncode == 0, f"{mended.stdout}{mended.stderr}"
    assert project.processes() == []
    assert not (project.folder / ".tools" / "clusters" / "local").exists()
    done(project, down)


def done(project: Project, script: str) -> str:
    """What a script of the page says; it does not fail."""
    answer = project.shell(script)
    assert answer.returncode == 0, f"{script}\n{answer.stdout}{answer.stderr}"
    return answer.stdout
