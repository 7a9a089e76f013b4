"""checkov's Kubernetes checks on every rendered environment: findings are fixed, or accepted with a
reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.contract.conftest import NAMES, ROOT, Tree
from tests.shared import once

CHECKOV = ROOT / ".venv-scanners" / "bin" / "checkov"

EVERYWHERE = {
    "CKV_K8S_11": "CPU limits throttle a server that has the node to itself; requests share the CPU",
    "CKV_K8S_15": "tags are pinned, and a node that has ten gigabytes of image must not ask a registry to start a pod",
    "CKV_K8S_40": "uid 2000 is the user of the vLLM image: Python's getpwuid fails for one without an entry",
    "CKV_K8S_43": "digests are locked with the release; until then tags are pinned to versions",
    "CKV_K8S_35": "the engines and LiteLLM read keys from variables alone; External Secrets owns the Secret",
}
"""Checks whose findings are accepted for every workload."""
OF_ONE = {
    **{
        (
            f"CKV_K8S_{number}",
            "model-cache-owner",
        ): "gives a new Lustre file system away as root, with one capability, in a namespace of its own"
        for number in (23, 25)
    },
    ("CKV_K8S_38", "split-router"): "the endpoint picker watches the pods of its pool",
    **{
        (f"CKV_K8S_{number}", "neuron-monitor"): "reads the devices of its node, in a namespace of its own"
        for number in (8, 9, 16, 20, 22, 23, 28, 29, 31, 37)
    },
}
"""Findings that are accepted for one workload."""

Found = tuple[str, str]


def findings(folders: Mapping[str, Path], workspace: Path) -> dict[str, set[Found]]:
    """Check and name of every workload that fails it, by name of the folder.

    One run, which takes seconds to start, over a copy of all: of several folders checkov reads the first
    alone.
    """
    for name, folder in folders.items():
        shutil.copytree(folder, workspace / name)
    run = subprocess.run(
        [
            CHECKOV,
            *("--directory", str(workspace), "--framework", "kubernetes", "--skip-download", "--compact"),
            *("--output", "json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(workspace), "LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(run.stdout)
    assert not report["summary"]["parsing_errors"]
    # Without --quiet it says what has passed: a folder of which it says nothing was not looked at.
    passed = Counter(_folder(check) for check in report["results"]["passed_checks"])
    assert all(passed[name] > 50 for name in folders), run.stderr
    found: dict[str, set[Found]] = {name: set() for name in folders}
    for check in report["results"]["failed_checks"]:
        found[_folder(check)].add((check["check_id"], check["resource"].rpartition(".")[2]))
    return found


def _folder(check: dict[str, Any]) -> str:
    return str(check["file_path"]).split("/")[1]


@pytest.fixture(scope="session")
def found(tree: Callable[[str], Tree], tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Found]]:
    """What fails, by environment."""
    return once(
        tmp_path_factory,
        "checkov",
        lambda workspace: findings({name: tree(name).folder for name in NAMES}, workspace),
    )


def test_every_finding_is_accepted_with_a_reason(each: Tree, found: dict[str, set[Found]]) -> None:
    assert {f for f in found[each.name] if f[0] not in EVERYWHERE and f not in OF_ONE} == set()


def test_every_acceptance_is_still_needed(found: dict[str, set[Found]]) -> None:
    needed = found["serving"] | found["lustre"]

    assert EVERYWHERE.keys() <= {check for check, _ in needed}
    assert OF_ONE.keys() <= needed


def test_a_planted_mistake_is_found(prod: Tree, tmp_path: Path) -> None:
    """Over a copy of one model, whose server may do everything."""
    server = prod.only("Deployment", "qwen3-32b-fp8")
    broken = json.loads(json.dumps(server))
    broken["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    broken["spec"]["template"]["spec"]["hostNetwork"] = True
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "deployment.yaml").write_text(yaml.safe_dump(broken), encoding="utf-8")

    found = findings({"broken": tmp_path / "broken"}, tmp_path / "workspace")["broken"]

    assert {"CKV_K8S_16", "CKV_K8S_19", "CKV_K8S_20", "CKV_K8S_22"} <= {check for check, _ in found}
