"""An engine in another package: one folder and one entry point, without a change of Modelyard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import ROOT, read_tree
from tests.contract.fake_openai import KEY, serving

PACKAGE = ROOT / "tests" / "fixtures" / "echo_engine"
MODEL = """
model: hf://Qwen/Qwen3-8B
engine: {name: echo, maxModelLen: 512, args: {loudness: 3}}
accelerator: l40s
replicas: {min: 2, max: 4}
access: {apiKey: clients}
"""
ENVIRONMENT = """
account: "123456789012"
region: us-east-1
availabilityZones: [us-east-1a, us-east-1b]
pools:
  gpu: {accelerator: l40s, limit: 8}
secrets: {clients: lab/clients}
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The command in a project with a model of the engine; `installed=False` without the engine's package."""
    project = tmp_path_factory.mktemp("project")
    for path, text in (("models/parrot.yaml", MODEL), ("environments/lab.yaml", ENVIRONMENT)):
        (project / path).parent.mkdir()
        (project / path).write_text(text, encoding="utf-8")

    def command(*words: str, installed: bool = True) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name != "MODELYARD_CRDS"}
        return subprocess.run(
            [Path(sys.executable).with_name("modelyard"), *words, "--env", "lab"],
            cwd=project,
            env=env | ({"PYTHONPATH": str(PACKAGE)} if installed else {}),
            capture_output=True,
            text=True,
            check=False,
        )

    return command


@pytest.fixture(scope="module")
def objects(run: Run, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    out = tmp_path_factory.mktemp("dist")
    done = run("render", "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    return list(read_tree(out / "lab"))


def only(objects: list[dict[str, Any]], kind: str, name: str = "parrot") -> dict[str, Any]:
    (found,) = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    return found


def test_it_is_planned_with_its_own_release(run: Run) -> None:
    [model] = json.loads(run("plan", "-o", "json").stdout)["models"]
    assert (model["engine"], model["engineVersion"]) == ("echo", "1.0")


def test_it_is_judged_like_every_other_engine(run: Run) -> None:
    report = json.loads(run("checklist", "-o", "json").stdout)
    [model] = report["models"]
    results = {point["point"]: point["result"] for point in model["points"]}
    assert report["passed"]
    assert results.pop("compile") == "n.a."
    assert set(results.values()) == {"pass"}


def test_its_command_its_key_and_its_metrics_are_rendered(objects: list[dict[str, Any]]) -> None:
    pod = only(objects, "Deployment")["spec"]["template"]
    [server] = pod["spec"]["containers"]
    assert server["command"] == ["echo-server"]
    assert "--max-model-len=512" in server["args"]
    assert server["image"] == "registry.example/echo:1.0"
    assert "ECHO_API_KEY" in {variable["name"] for variable in server["env"]}
    assert server["readinessProbe"]["httpGet"]["path"] == "/health"
    [trigger] = only(objects, "ScaledObject")["spec"]["triggers"]
    assert trigger["metadata"]["query"].startswith("sum(echo_waiting{")


def test_its_alerts_ask_for_its_own_metrics(objects: list[dict[str, Any]]) -> None:
    rules = [rule for group in only(objects, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    text = json.dumps(rules)
    assert {"RequestQueueGrowing", "ReplicaNotReady"} <= {rule.get("alert") for rule in rules}
    assert "echo_waiting" in text
    assert "vllm:" not in text


def test_its_smoke_job_runs(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    [job] = [item for item in objects if item["kind"] == "Job" and "smoke" in item["metadata"]["name"]]
    spec = job["spec"]["template"]["spec"]
    [container] = spec["containers"]
    [volume] = [each for each in spec["volumes"] if each["name"] == "program"]
    program = only(objects, "ConfigMap", volume["configMap"]["name"])["data"]
    for item in volume["configMap"]["items"]:
        path = tmp_path / item["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program[item["key"]], encoding="utf-8")
    told = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    with serving() as server:
        expected = json.loads(told["EXPECTATIONS"]) | {"names": ["tiny", "acme/tiny"]}
        variables = {
            "API_KEY": KEY, "PACKAGES": "", "PYTHONPATH": str(tmp_path), "URL": server.url,
            "EXPECTATIONS": json.dumps(expected),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *container["command"][1:]],
            env={"PATH": os.environ["PATH"], **told, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_flags_are_checked_against_its_own_table(run: Run) -> None:
    assert run("validate").returncode == 0
    assert "g" in run("explain", "parrot").stdout


def test_without_its_package_the_name_is_refused_beside_those_that_there_are(run: Run) -> None:
    done = run("validate", installed=False)
    assert done.returncode == 1
    assert "models/parrot.yaml:3" in done.stderr + done.stdout
    assert "'llama-server', 'sglang' or 'triton', got 'echo'" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("nowhere:Echo", "engine echo of package broken cannot be loaded: ModuleNotFoundError"),
        ("json:JSONDecoder", "JSONDecoder is no Engine"),
        ("modelyard.engines.vllm:Vllm", "the name vllm is taken"),
    ],
)
def test_a_package_that_brings_no_engine_is_named(point: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "broken-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(f"[modelyard.engines]\necho = {point}\n", encoding="utf-8")
    done = subprocess.run(
        [Path(sys.executable).with_name("modelyard"), "catalog", "engines"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
