"""checkov's checks for Kubernetes over every rendered environment: what it finds is mended, or accepted with a reason."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

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


def findings(folders: Sequence[Path], home: Path) -> list[set[Found]]:
    """Check and name of every workload that fails it, for each of `folders`: one run, which takes seconds to start."""
    run = subprocess.run(
        [
            CHECKOV,
            *(argument for folder in folders for argument in ("--directory", str(folder))),
            *("--framework", "kubernetes", "--skip-download", "--compact", "--quiet", "--output", "json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    # A report for each folder, which has those before it in it as well.
    reports = [
        json.loads(text) for text in re.split(r"(?<=^})\n(?={)", run.stdout.strip(), flags=re.MULTILINE)
    ]
    assert len(reports) == len(folders), run.stderr
    passed = [0, *(report["summary"]["passed"] for report in reports)]
    assert all(after - before > 50 for before, after in pairwise(passed)), run.stderr
    assert not reports[-1]["summary"]["parsing_errors"]
    failed = reports[-1]["results"]["failed_checks"]
    return [
        {
            (each["check_id"], each["resource"].rpartition(".")[2])
            for each in failed
            if Path(each["file_abs_path"]).is_relative_to(folder.resolve())
        }
        for folder in folders
    ]


@pytest.fixture(scope="session")
def found(tree: Callable[[str], Tree], tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Found]]:
    """What fails, by environment."""
    return once(
        tmp_path_factory,
        "checkov",
        lambda home: dict(zip(NAMES, findings([tree(name).folder for name in NAMES], home), strict=True)),
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
    (tmp_path / "deployment.yaml").write_text(yaml.safe_dump(broken), encoding="utf-8")

    (found,) = findings([tmp_path], tmp_path)

    assert {"CKV_K8S_16", "CKV_K8S_19", "CKV_K8S_20", "CKV_K8S_22"} <= {check for check, _ in found}
