"""checkov's checks for Kubernetes over every rendered environment: what it finds is mended, or accepted with a reason."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tests.contract.conftest import ROOT, Tree

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


def findings(folder: Path, home: Path) -> Iterator[Found]:
    """Check and name of every workload that fails it."""
    run = subprocess.run(
        [
            CHECKOV,
            *("--directory", folder, "--framework", "kubernetes", "--skip-download", "--compact"),
            *("--quiet", "--output", "json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LOG_LEVEL": "ERROR"},
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(run.stdout)
    assert report["summary"]["passed"] > 50, run.stderr
    assert not report["summary"]["parsing_errors"]
    for failed in report["results"]["failed_checks"]:
        yield failed["check_id"], failed["resource"].rpartition(".")[2]


def test_every_finding_is_accepted_with_a_reason(each: Tree, tmp_path: Path) -> None:
    found = set(findings(each.folder, tmp_path))

    assert {f for f in found if f[0] not in EVERYWHERE and f not in OF_ONE} == set()


def test_every_acceptance_is_still_needed(tree: Callable[[str], Tree], tmp_path: Path) -> None:
    found = set(findings(tree("serving").folder, tmp_path)) | set(findings(tree("lustre").folder, tmp_path))

    assert EVERYWHERE.keys() <= {check for check, _ in found}
    assert OF_ONE.keys() <= found


def test_a_planted_mistake_is_found(prod: Tree, tmp_path: Path) -> None:
    """Over a copy of one model, whose server may do everything."""
    server = prod.only("Deployment", "qwen3-32b-fp8")
    broken = json.loads(json.dumps(server))
    broken["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    broken["spec"]["template"]["spec"]["hostNetwork"] = True
    (tmp_path / "deployment.yaml").write_text(yaml.safe_dump(broken), encoding="utf-8")

    assert {"CKV_K8S_16", "CKV_K8S_19", "CKV_K8S_20", "CKV_K8S_22"} <= {
        check for check, _ in findings(tmp_path, tmp_path)
    }
