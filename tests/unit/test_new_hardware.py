"""Adding a GPU family of a known vendor only takes data: rows for an accelerator and its instance types."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import modelyard.findings

PACKAGE = Path(modelyard.findings.__file__).parents[1]
ACCELERATOR = {
    "product": "NVIDIA X900",
    "vendor": "nvidia",
    "memoryMib": 393216,
    "usableGib": 380.0,
    "computeCapability": "13.0",
    "features": ["nvlink"],
    "bandwidthGBs": 16000,
    "usableSource": "made up",
    "tflops": {"fp16": 4000, "fp8": 8000},
    "tflopsSource": "made up",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose tables have the family p99, eight X900 a node with an EFA device on each of
    ten cards."""
    root = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, root / "modelyard", ignore=shutil.ignore_patterns("__pycache__"))
    data = root / "modelyard" / "hardware" / "data"
    yaml = YAML(typ="safe", pure=True)
    accelerators = yaml.load(data / "accelerators.yaml")
    accelerators["accelerators"]["x900"] = ACCELERATOR
    yaml.dump(accelerators, data / "accelerators.yaml")
    types = json.loads((data / "instance_types.json").read_text(encoding="utf-8"))
    row = types["instanceTypes"]["p6-b200.48xlarge"] | {"accelerator": "x900", "efaInterfaces": 10}
    types["instanceTypes"]["p99.48xlarge"] = row
    (data / "instance_types.json").write_text(json.dumps(types), encoding="utf-8")
    fabric = yaml.load(data / "fabric.yaml")
    fabric["devices"]["p99"] = {"firstCard": 2, "otherCards": 1}
    yaml.dump(fabric, data / "fabric.yaml")
    return root


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    model = {"model": "hf://Qwen/Qwen3-32B", "accelerator": "x900:16", "replicas": 1}
    pool = {"accelerator": "x900", "limit": 32, "fabric": "efa"}
    environment = {
        "account": "123456789012",
        "region": "us-east-2",
        "availabilityZones": ["us-east-2a", "us-east-2b"],
        "pools": {"p99": pool},
    }
    for path, content in (("models/qwen.yaml", model), ("environments/lab.yaml", environment)):
        (folder / path).parent.mkdir()
        (folder / path).write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
    return folder


def modelyard_of(package: Path, project: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from modelyard.cli.entry import main; main()", *args],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(package), "MODELYARD_CRDS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_planned(package: Path, project: Path) -> None:
    planned: dict[str, Any] = json.loads(modelyard_of(package, project, "plan", "--env", "lab", "-o", "json"))

    [model] = planned["models"]
    assert model["instanceTypes"] == ["p99.48xlarge"]
    assert model["accelerator"] == "x900"


def test_it_is_sized_and_estimated(package: Path, project: Path) -> None:
    sized = json.loads(modelyard_of(package, project, "size", "qwen", "-o", "json"))
    asked = ["--model", "Qwen/Qwen3-32B", "--accelerator", "x900", "--kv-cache-dtype", "fp8", "-o", "json"]

    assert {"x900"} <= {option["accelerator"] for option in sized["options"]}
    assert json.loads(modelyard_of(package, project, "estimate", *asked))["fits"]


def test_its_nodes_are_rendered_with_their_fabric(package: Path, project: Path) -> None:
    modelyard_of(package, project, "render", "--env", "lab", "--out", "tree")

    [text] = [
        p
        for p in (project / "tree").rglob("*.yaml")
        if "EC2NodeClass" in p.read_text("utf-8") and "efa-only" in p.read_text("utf-8")
    ]
    interfaces = YAML(typ="safe", pure=True).load(text)["spec"]["networkInterfaces"]
    assert [(i["networkCardIndex"], i["deviceIndex"]) for i in interfaces] == [
        (0, 0),
        (0, 2),
        *((card, 1) for card in range(1, 10)),
    ]
