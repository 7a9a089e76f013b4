"""`cdk synth -c controls=true` as in a user's pipeline; without the switch no checker runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controls.conftest import ROOT

pytestmark = pytest.mark.story

PLANTED = """    cluster = app.node.find_child("Cluster").node.find_child("Cluster").node.find_child("Cluster")
    cluster.node.default_child.add_property_override("ResourcesVpcConfig.EndpointPublicAccess", True)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the app with a public endpoint in it."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("charts", "infra", "models", "environments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "cdk.json", "modelyard.yaml"):
        shutil.copy(ROOT / name, folder)
    composition = folder / "infra" / "app.py"
    program = composition.read_text(encoding="utf-8")
    assert program.count("    app.synth()\n") == 1
    composition.write_text(program.replace("    app.synth()\n", PLANTED + "    app.synth()\n"))
    return folder


def synth(project: Path, *context: str) -> subprocess.CompletedProcess[str]:
    arguments = [argument for each in context for argument in ("-c", each)]
    return subprocess.run(
        [str(ROOT / "node_modules" / ".bin" / "cdk"), "synth", "-q", "--no-notices", *arguments],
        cwd=project,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "CDK_"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_with_the_switch_a_mistake_fails_the_synthesis_and_is_named(project: Path) -> None:
    result = synth(project, "env=dev", "controls=true")
    said = result.stdout + result.stderr

    assert result.returncode != 0
    assert "eks_endpoint_no_public_access_check" in said
    assert "modelyard::eks-endpoint-open" in said
    assert "the API server can be reached from the whole internet" in said


def test_without_the_switch_the_synthesis_asks_no_checker(project: Path) -> None:
    result = synth(project, "env=dev")

    assert result.returncode == 0, result.stderr
    assert "endpoint" not in result.stdout + result.stderr
