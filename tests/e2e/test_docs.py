"""Every command in the documentation runs.

Blocks marked `sh` are executed in order, file by file, in a copy of the project. `sh exit=1` must fail with
that code. `sh aws` needs an account and `sh network` a connection: only their syntax is checked. `sh account`
runs against a fake account of environment prod, one per page. `sh localcloud` runs against environment prod
on the embedded AWS, deployed once per page, and a fake cluster, see deployed_prod.py. `sh cluster` is run by
tests/cluster/test_people.py. Make targets are dry runs here; test_make_up.py runs them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# CDK's own validation of the shipped templates is a test of tests/controls; here it would run once a command.
UNVALIDATED = {"CDK_VALIDATION": "false"}
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#]+)(#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    info: str
    script: str

    @property
    def needs_others(self) -> bool:
        return not {"aws", "network", "cluster"}.isdisjoint(self.info.split())

    @property
    def meets_fake_account(self) -> bool:
        return "account" in self.info.split()

    @property
    def meets_embedded_aws(self) -> bool:
        return "localcloud" in self.info.split()

    @property
    def kubernetes(self) -> str | None:
        """Version with which prod is deployed, where the page's first block says one."""
        match = re.search(r"kubernetes=(\S+)", self.info)
        return match[1] if match else None

    @property
    def exit_code(self) -> int:
        match = re.search(r"exit=(\d+)", self.info)
        return int(match[1]) if match else 0


def blocks(page: Path) -> list[Block]:
    found = _FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(m["info"], textwrap.dedent(m["body"])) for m in found if m["info"].split()[:1] == ["sh"]]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def fake_account() -> Iterator[dict[str, str]]:
    """Variables with which boto3 meets a fake account of environment prod; moto takes a second to import."""
    from tests.account.served_account import account_of_prod

    with account_of_prod() as variables:
        yield variables


@pytest.fixture
def embedded_prod(tmp_path: Path) -> Iterator[Callable[[str], dict[str, str]]]:
    """Call it to deploy prod from `tmp_path`; it goes with the test."""
    from tests.e2e.deployed_prod import deployed_prod

    if shutil.which("aws") is None:
        pytest.skip("the page uses the AWS command line, which is not installed")
    with TemporaryDirectory() as state, ExitStack() as stack:
        yield lambda version: stack.enter_context(deployed_prod(tmp_path, Path(state) / "aws", version))


@pytest.mark.story
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_commands_of_the_page_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for part in (".ci", "charts", "infra", "models", "environments", "constructs"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    files = (
        "app.py",
        "cdk.json",
        "cdk8s.yaml",
        "modelyard.yaml",
        "pipeline.yaml",
        "Makefile",
        "pyproject.toml",
        "uv.lock",
        "package-lock.json",
    )
    for part in files:
        shutil.copy(ROOT / part, tmp_path)
    for part in (".venv", "node_modules", ".venv-localcloud", ".venv-scanners"):
        (tmp_path / part).symlink_to(ROOT / part)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    environment |= UNVALIDATED
    found = blocks(page)
    if any(block.meets_fake_account for block in found):
        environment |= request.getfixturevalue("fake_account")
    if any(block.meets_embedded_aws for block in found):
        version = next((block.kubernetes for block in found if block.kubernetes), "1.36")
        environment |= request.getfixturevalue("embedded_prod")(version)

    for block in found:
        script = re.sub(r"^make ", "make --dry-run ", block.script, flags=re.MULTILINE)
        preamble = f"set -eu\nexport PATH={ROOT / '.venv' / 'bin'}:$PATH\n"
        options = ["-n"] if block.needs_others else []
        result = subprocess.run(
            ["bash", *options, "-c", preamble + script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        expected = 0 if block.needs_others else block.exit_code
        assert result.returncode == expected, f"{script}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_the_page_lead_somewhere(page: Path) -> None:
    targets = [m["target"] for m in _LINK.finditer(page.read_text(encoding="utf-8"))]
    dead = [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]

    assert dead == []
