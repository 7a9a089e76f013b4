"""`modelyard validate --crds`: a cluster's own CRDs, as kubectl prints them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DEFINITIONS = """
apiVersion: v1
kind: List
items:
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: scaledobjects.keda.sh}
    spec:
      group: keda.sh
      names: {kind: ScaledObject}
      versions:
        - name: v1alpha1
          served: true
          schema:
            openAPIV3Schema:
              type: object
              properties:
                spec:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                  properties:
                    minReplicaCount: {type: integer}
                    maxReplicaCount: {type: integer}
                  x-kubernetes-validations:
                    - rule: "self.maxReplicaCount <= LIMIT"
                      message: "no more than LIMIT replicas here"
"""


def validate(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("modelyard"), "validate", "--env", "prod", "--crds", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("limit", "code"), [(50, 0), (3, 1)])
def test_rules_of_the_cluster_decide_and_gaps_are_named(tmp_path: Path, limit: int, code: int) -> None:
    (tmp_path / "crds.yaml").write_text(DEFINITIONS.replace("LIMIT", str(limit)), encoding="utf-8")

    result = validate(tmp_path)

    assert result.returncode == code, result.stderr
    assert (
        "K8S002 error: ScaledObject llama-3-1-8b: $.spec: no more than 3 replicas here" in result.stderr
    ) == (code == 1)
    assert "NodePool (karpenter.sh/v1), no definition in" in result.stderr
