"""`cdk synth` as users run it, with no credentials and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.synth.conftest import ENVIRONMENTS, ROOT, stacks_of

_STACKS = {"Network", "Cluster", "Karpenter", "ModelCache", "Secrets", "Delivery"}


def _cdk(*arguments: str, home: Path, validation: bool = True) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "CDK_", "MODELYARD_"))}
    node = Path(os.environ.get("JSII_NODE", "node"))
    environment = {
        **inherited,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(node.parent), inherited["PATH"]]),
        "HOME": str(home),
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "none"),
        # Nothing listens there: whatever wants the network fails.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CI": "true",
        **({} if validation else {"CDK_VALIDATION": "false"}),
    }
    return subprocess.run(
        [str(ROOT / "node_modules" / ".bin" / "cdk"), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_synthesises_with_no_credentials_and_no_network(name: str, tmp_path: Path) -> None:
    out = tmp_path / "cdk.out"

    result = _cdk(
        *("synth", "--quiet", "--no-notices", "--no-lookups", "-c", f"env={name}"),
        *("--output", str(out)),
        home=tmp_path,
        validation=name == "prod",  # half of the time; tests/controls has it of every environment
    )

    assert result.returncode == 0, result.stderr
    assert "[Warning" not in result.stderr, result.stderr
    assert "credentials" not in result.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert not manifest.get("missing")
    assert {path.name.removesuffix(".template.json") for path in out.glob("*.template.json")} == stacks_of(
        name
    )


def test_an_unknown_environment_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    result = _cdk(
        *("synth", "--quiet", "--no-notices", "-c", "env=porduction", "--output", str(tmp_path / "cdk.out")),
        home=tmp_path,
    )

    assert result.returncode != 0
    assert "no environment 'porduction'; use one of dev, local, prod, staging" in result.stderr
