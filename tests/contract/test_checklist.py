"""The production checklist: shipped environments pass, and every point fails when its object loses the
checked field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from modelyard.findings import Severity
from modelyard.object_rules.checklist import PointVerdict, Result, checklist, checklist_findings
from modelyard.object_rules.points import POINTS
from modelyard.planning import Plan
from modelyard.project import load_project
from tests.contract.conftest import ROOT, Tree, folders_of

MODEL = "qwen3-32b-fp8"
POD = ("spec", "template", "spec")
SERVER = (*POD, "containers", 0)
GONE = object()
MODELYARD = Path(sys.executable).with_name("modelyard")


@cache
def planned(name: str) -> Plan:
    found = load_project(name, *folders_of(name)).plan()
    assert found is not None
    return found


def verdicts(tree: Tree, objects: list[dict[str, Any]] | None = None) -> dict[tuple[str, str], PointVerdict]:
    found = checklist(planned(tree.name), tree.objects if objects is None else objects)
    return {(verdict.model, verdict.point): verdict for verdict in found}


def test_every_point_is_answered_for_every_model_and_none_fails(each: Tree) -> None:
    found = verdicts(each)

    models = {model.name for model in planned(each.name).models}
    assert set(found) == {(model, point) for model in models for point in POINTS}
    assert [v for v in found.values() if v.result is Result.FAIL] == []
    assert all(verdict.reason for verdict in found.values())


def test_a_point_that_does_not_apply_says_why(tree: Callable[[str], Tree]) -> None:
    found = verdicts(tree("serving"))

    assert found["chat-cpu", "parallel"].result is Result.NOT_APPLICABLE
    assert "whole layers" in found["chat-cpu", "parallel"].reason
    assert found["nightly", "metrics"].reason == "a job, no endpoint"
    assert found["tensorrt", "length"].result is Result.NOT_APPLICABLE
    assert found["streamed", "cache"].reason == "streamed from its bucket"
    assert found["two-nodes", "parallel"].reason == "tensor 8 × pipeline 2"
    assert found["wide-experts", "parallel"].reason == "data 16"
    assert found["split-prefill", "scaling"].result is Result.PASS


def changed(
    tree: Tree, kind: str, path: tuple[Any, ...], value: object, name: str = MODEL
) -> list[dict[str, Any]]:
    """All objects, with `value` at `path` of one of them; without `path` the object is gone."""
    objects = deepcopy(list(tree.objects))
    item = next(o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    if not path:
        return [o for o in objects if o is not item]
    place: Any = item
    for step in path[:-1]:
        place = place[step]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return objects


ARGS = (*SERVER, "args")
TYPES = (
    *(*POD, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    *("nodeSelectorTerms", 0, "matchExpressions", 0, "values"),
)


@pytest.mark.parametrize(
    ("point", "kind", "path", "value", "reason"),
    [
        ("memory", "Deployment", (*SERVER, "resources", "requests", "memory"), "1Gi", "memory 1Gi"),
        ("memory", "Deployment", (*SERVER, "resources", "limits", "memory"), GONE, "at most None"),
        ("instance", "Deployment", (*POD, "nodeSelector"), GONE, "no NodePool"),
        ("instance", "NodePool g6e", (), None, "no NodePool is called g6e"),
        ("instance", "Deployment", (*POD, "affinity"), GONE, "any instance type"),
        ("instance", "Deployment", TYPES, ["g6e.3xlarge"], "there is no instance type g6e.3xlarge"),
        ("instance", "Deployment", TYPES, ["p5.48xlarge"], "p5.48xlarge has no l40s"),
        ("instance", "Deployment", (*SERVER, "resources", "requests", "nvidia.com/gpu"), "2", "1 planned"),
        ("parallel", "Deployment", (*SERVER, "resources", "limits", "nvidia.com/gpu"), "2", "for 2 × l40s"),
        ("shm", "Deployment", (*POD, "volumes", 1, "emptyDir", "medium"), GONE, "64 MiB"),
        ("shm", "Deployment", (*POD, "volumes", 1, "emptyDir", "sizeLimit"), "64Mi", "has 64Mi"),
        ("shm", "Deployment", (*SERVER, "volumeMounts", 1), GONE, "no volume in memory"),
        ("metrics", "ServiceMonitor", (), None, "0 ServiceMonitors"),
        ("metrics", "ServiceMonitor", ("spec", "endpoints", 0, "path"), "/stats", "does not read /metrics"),
        ("metrics", f"ConfigMap dashboard-model-{MODEL}", (), None, "no dashboard"),
        ("metrics", "ConfigMap dashboard-fleet", (), None, "no dashboard"),
        ("metrics", "PrometheusRule", (), None, "nobody is alerted"),
        ("scaling", "Deployment", ("spec", "replicas"), 1, "one replica and no autoscaler"),
        ("scaling", "ScaledObject llama-3-1-8b", (), None, "one replica and no autoscaler"),
        ("cache", "PersistentVolumeClaim model-cache", (), None, "claim model-cache is not rendered"),
        ("cache", "Deployment", (*SERVER, "volumeMounts", 3, "readOnly"), GONE, "/models can be written"),
        ("cache", "Deployment", (*SERVER, "volumeMounts", 3), GONE, "no volume holds /models"),
        ("compile", "Deployment", (*SERVER, "volumeMounts", 4), GONE, "lost with the pod"),
        ("drain", "Deployment", (*POD, "terminationGracePeriodSeconds"), 60, "60 s until the kill"),
        ("drain", "Deployment", (*SERVER, "lifecycle"), GONE, "requests get 60 s"),
        ("access", "NetworkPolicy", (), None, "no NetworkPolicy"),
        ("access", "NetworkPolicy", ("spec", "ingress", 0, "from"), GONE, "everybody"),
        ("access", "Service", ("spec", "type"), "LoadBalancer", "is a LoadBalancer"),
    ],
)
def test_a_point_fails_when_its_object_loses_what_it_is_read_from(
    prod: Tree, point: str, kind: str, path: tuple[Any, ...], value: object, reason: str
) -> None:
    kind, _, name = kind.partition(" ")
    model = name if name.startswith("llama") else MODEL

    verdict = verdicts(prod, changed(prod, kind, path, value, name or MODEL))[model, point]

    assert (verdict.result, verdict.model) == (Result.FAIL, model)
    assert reason in verdict.reason
    assert verdict.fix


@pytest.mark.parametrize(
    ("point", "flag", "written", "reason"),
    [
        ("memory", "--gpu-memory-utilization=0.9", "--gpu-memory-utilization=0.95", "is 0.95"),
        ("memory", "--max-num-seqs=48", "--max-num-seqs=480", "480 sequences"),
        ("quantization", "--max-num-seqs=48", "--quantization=awq", "not decided by the plan"),
        ("length", "--max-model-len=16384", "--max-model-len=32768", "32768 tokens"),
        ("length", "--max-model-len=16384", "--enable-prefix-caching", "no length"),
        ("parallel", "--tensor-parallel-size=1", "--tensor-parallel-size=2", "tensor 2 for 1 × l40s"),
        ("parallel", "--tensor-parallel-size=1", "--enforce-eager", "no tensor parallelism"),
        ("drain", "--shutdown-timeout=60", "--shutdown-timeout=5", "requests get 5 s of 60 s"),
    ],
)
def test_a_point_fails_when_a_flag_says_something_else(
    prod: Tree, point: str, flag: str, written: str, reason: str
) -> None:
    args = list(prod.only("Deployment", MODEL)["spec"]["template"]["spec"]["containers"][0]["args"])
    if flag in args:
        args[args.index(flag)] = written
    else:  # llama-server takes a name and its value as two words
        args[args.index(flag.split("=")[0]) + 1] = written.split("=")[1]

    verdict = verdicts(prod, changed(prod, "Deployment", ARGS, args))[MODEL, point]

    assert verdict.result is Result.FAIL
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("model", "point", "flag", "written", "reason"),
    [
        ("streamed", "cache", "--load-format=runai_streamer", "--load-format=auto", "is not streamed"),
        ("gguf-gpu", "length", "--ctx-size=32768", "--ctx-size=4000000", "1000000 tokens"),
        ("sglang-chat", "length", "--context-length=16384", "--context-length=999999", "999999 tokens"),
        (
            "trainium",
            "parallel",
            "--tensor-parallel-size=4",
            "--tensor-parallel-size=1",
            "one rank for 1 × trn2",
        ),
        ("gguf-gpu", "memory", "--parallel=4", "--parallel=64", "64 sequences"),
    ],
)
def test_every_engine_is_read_by_its_own_flags(
    tree: Callable[[str], Tree], model: str, point: str, flag: str, written: str, reason: str
) -> None:
    serving = tree("serving")
    args = list(serving.only("Deployment", model)["spec"]["template"]["spec"]["containers"][0]["args"])
    if flag in args:
        args[args.index(flag)] = written
    else:  # llama-server takes a name and its value as two words
        args[args.index(flag.split("=")[0]) + 1] = written.split("=")[1]

    verdict = verdicts(serving, changed(serving, "Deployment", ARGS, args, model))[model, point]

    assert verdict.result is Result.FAIL
    assert reason in verdict.reason


def test_a_key_that_the_server_does_not_ask_for_is_found(tree: Callable[[str], Tree]) -> None:
    serving = tree("serving")
    env = serving.only("Deployment", "split")["spec"]["template"]["spec"]["containers"][0]["env"]
    open_to_all = [variable for variable in env if variable["name"] != "VLLM_API_KEY"]

    path = (*SERVER, "env")
    verdict = verdicts(serving, changed(serving, "Deployment", path, open_to_all, "split"))["split", "access"]
    orphan = verdicts(serving, changed(serving, "ExternalSecret", (), None, "clients"))["split", "access"]

    assert "does not ask for the key clients" in verdict.reason
    assert "nobody renders secret clients" in orphan.reason


def test_a_model_without_a_workload_fails_every_point(prod: Tree) -> None:
    found = verdicts(prod, changed(prod, "Deployment", (), None))

    assert {found[MODEL, point].result for point in POINTS} == {Result.FAIL}


def test_a_failing_point_is_an_error_in_a_strict_environment_and_a_warning_elsewhere(prod: Tree) -> None:
    found = verdicts(prod, changed(prod, "ServiceMonitor", (), None)).values()

    [error] = checklist_findings(found, strict=True)
    [warning] = checklist_findings(found, strict=False)

    assert (error.code, error.level, error.subject) == ("CHECK001", Severity.ERROR, MODEL)
    assert warning.level is Severity.WARNING
    assert error.message.startswith("metrics: ")


@pytest.fixture
def patched(tmp_path: Path) -> Path:
    """The shipped models, one of them with its shared memory on the node's disk."""
    volumes = [
        {"name": "home", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "shm", "emptyDir": {"sizeLimit": "2Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
        {"name": "model-cache", "persistentVolumeClaim": {"claimName": "model-cache"}},
    ]
    for file in (ROOT / "models").glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        if file.stem == MODEL:
            patch = {"kind": "Deployment", "merge": {"spec": {"template": {"spec": {"volumes": volumes}}}}}
            text += yaml.safe_dump({"patches": [patch]})
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("env", "code", "level"), [("prod", 1, "error"), ("dev", 0, "warning")])
def test_the_command_is_a_gate_in_prod(patched: Path, env: str, code: int, level: str) -> None:
    run = subprocess.run(
        [MODELYARD, "checklist", "--env", env, "--models", str(patched), "--output", "json"],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )

    document = json.loads(run.stdout)
    assert (run.returncode, document["passed"]) == (code, code == 0), run.stderr
    [finding] = document["findings"]
    assert (finding["code"], finding["severity"], finding["subject"]) == ("CHECK001", level, MODEL)
    assert "shm: no volume in memory" in finding["message"]
    [model] = [m for m in document["models"] if m["model"] == MODEL]
    assert [p["point"] for p in model["points"] if p["result"] == "fail"] == ["shm"]


def test_the_table_has_a_row_for_every_model_and_a_column_for_every_point() -> None:
    run = subprocess.run(
        [MODELYARD, "checklist", "--env", "prod"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    head = next(line for line in run.stdout.splitlines() if line.startswith(" MODEL"))
    assert head.split() == ["MODEL", *(point.upper() for point in POINTS)]
    assert all(f" {model.name} " in run.stdout for model in planned("prod").models)
