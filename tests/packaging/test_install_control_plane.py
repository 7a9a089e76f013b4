"""What builds the programs of tests/cluster says what a machine lacks, and that is no failure."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modelyard.releases import chart

ROOT = Path(__file__).parents[2]
SCRIPT = Path(".ci") / "install_control_plane.py"
TOOLS = Path("tests") / "cluster" / "tools"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script and its modules, away from what this checkout may have built."""
    shutil.copytree(ROOT / TOOLS, tmp_path / TOOLS)
    (tmp_path / SCRIPT).parent.mkdir()
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, checkout / SCRIPT],
        env={"PATH": str(checkout / "bin"), "HOME": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )


def go(checkout: Path, script: str) -> None:
    """A program of that name which is not Go."""
    program = checkout / "bin" / "go"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def test_without_go_it_says_how_to_get_it(checkout: Path) -> None:
    answer = install(checkout)

    assert answer.returncode == 0
    assert answer.stdout.startswith("no control plane: go is not found; install Go 1.26")
    assert "https://go.dev/dl" in answer.stdout


def test_an_old_go_is_named(checkout: Path) -> None:
    go(checkout, "echo go1.21.3")

    answer = install(checkout)

    assert answer.returncode == 0
    assert answer.stdout.startswith("no control plane: go1.21.3 is too old; install Go 1.26")


def test_a_machine_without_the_module_proxy_is_no_failure(checkout: Path) -> None:
    go(checkout, '[ "$1" = env ] && echo go1.99.0 && exit 0\necho "dial tcp: no route to host" >&2\nexit 1')

    answer = install(checkout)

    assert answer.returncode == 0
    assert "Go cannot get its sources: dial tcp: no route to host" in answer.stdout
    assert not (checkout / ".tools" / "control-plane.json").exists()
    assert not [*(checkout / ".cache").rglob("*.log")]


def test_a_program_that_does_not_build_is_a_failure(checkout: Path) -> None:
    go(
        checkout,
        '[ "$1" = env ] && echo go1.99.0\n[ "$1" = build ] && echo "undefined: x" >&2 && exit 2\nexit 0',
    )

    answer = install(checkout)

    assert answer.returncode == 1
    assert "etcd does not build:\nundefined: x" in answer.stderr


def test_what_is_built_is_built_once(checkout: Path) -> None:
    module = checkout / "module"
    (module / "config" / "crd" / "bases").mkdir(parents=True)
    (module / "config" / "crd" / "bases" / "kind.yaml").write_text("kind: CustomResourceDefinition\n")
    go(
        checkout,
        f"""
[ "$1" = env ] && echo go1.99.0
[ "$1 $2" = "mod download" ] && echo '{{"Dir": "{module}"}}'
if [ "$1" = build ]; then
  while [ "$1" != -o ]; do shift; done
  echo built > "$2"
fi
exit 0""",
    )

    first, second = install(checkout), install(checkout)

    assert "built kube-apiserver: 0 s for its sources" in first.stdout
    assert (first.returncode, second.returncode, second.stdout) == (0, 0, "")
    assert (checkout / ".tools" / "control-plane.json").is_file()


def test_the_karpenter_of_the_tests_is_the_one_that_is_installed() -> None:
    module = (ROOT / TOOLS / "karpenter" / "go.mod").read_text(encoding="utf-8")

    assert f"require github.com/aws/karpenter-provider-aws v{chart('karpenter').version}" in module
