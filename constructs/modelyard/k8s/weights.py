"""Weights in the shared cache: one fetch per model and revision, a marker when it is whole, read-only servers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from constructs import Construct

from modelyard.k8s.labels import model_annotations, model_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.pod_security import container_security_context, pod_security_context
from modelyard.planning import ModelPlan

MOUNT_PATH = "/models"
CLAIM = "model-cache"
MARKER = ".complete"

PYTHON_IMAGE = "docker.io/library/python:3.13.7-slim"
_HUB = "huggingface_hub==2.4.0"

# Runs in the fetch job. A partial folder keeps what was downloaded, so a restart resumes; the rename makes a whole
# folder appear at once. No `${}`: Flux would take it for a variable of its own.
FETCH_SCRIPT = """\
import os, pathlib, subprocess, sys
target = pathlib.Path(os.environ["TARGET"])
marker = os.environ["MARKER"]
if (target / marker).exists():
    print(target, "is complete")
    sys.exit(0)
try:
    from huggingface_hub import snapshot_download
except ImportError:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", "/tmp/hub", os.environ["HUB"]]
    subprocess.run(pip, check=True)
    sys.path.insert(0, "/tmp/hub")
    from huggingface_hub import snapshot_download
from huggingface_hub.errors import GatedRepoError
repository = os.environ["REPOSITORY"]
partial = target.with_name(target.name + ".partial")
partial.mkdir(parents=True, exist_ok=True)
try:
    snapshot_download(
        repository,
        revision=os.environ["REVISION"],
        local_dir=partial,
        ignore_patterns=["*.pth", "*.gguf", "*.onnx", "original/*", "metal/*"],
    )
except GatedRepoError:
    print("No access to", repository, "- accept its licence at https://huggingface.co/" + repository)
    sys.exit(3)
(partial / marker).write_text(os.environ["REVISION"])
partial.rename(target)
print(target, "is complete")
"""

AWAIT_SCRIPT = """\
import os, pathlib, time
waiting = [pathlib.Path(p, os.environ["MARKER"]) for p in os.environ["TARGETS"].split(",")]
while missing := [str(p) for p in waiting if not p.exists()]:
    print("waiting for", ", ".join(missing), flush=True)
    time.sleep(10)
"""


def weights_path(uri: str, revision: str) -> str:
    """Folder of `uri` at `revision` in the cache: every revision has its own."""
    scheme, rest = uri.split("://", 1)
    if scheme == "efs":
        return f"{MOUNT_PATH}/{rest}"
    return f"{MOUNT_PATH}/hf/{rest}/{revision.replace('/', '-')}"


def fetched_sources(plan: ModelPlan) -> list[tuple[str, str]]:
    """(uri, revision) of what jobs bring into the cache, base model first; `efs://` weights are there already."""
    weights = plan.model.model
    sources = [(weights.uri, weights.revision), *((a.uri, a.revision) for a in plan.model.adapters)]
    return [source for source in sources if source[0].startswith("hf://")]


def await_container(targets: list[str], image: str) -> dict[str, Any]:
    """An init container that ends when all `targets` are whole; it shares the server's image, which is there anyway."""
    return {
        "name": "await-weights",
        "image": image,
        "command": ["python3", "-c", AWAIT_SCRIPT],
        "env": [{"name": "MARKER", "value": MARKER}, {"name": "TARGETS", "value": ",".join(targets)}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "128Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": container_security_context(),
        "volumeMounts": [{"name": CLAIM, "mountPath": MOUNT_PATH, "readOnly": True}],
    }


class WeightsFetch(Construct):
    """The Job that downloads one repository at one revision.

    A Job cannot be changed, so its name carries a hash of what it does: another revision is another Job.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plan: ModelPlan,
        uri: str,
        revision: str,
        environment: str,
        namespace: str,
        token_secret: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.target = weights_path(uri, revision)
        env: list[dict[str, Any]] = [
            {"name": "HOME", "value": "/tmp"},
            {"name": "HF_HUB_DISABLE_TELEMETRY", "value": "1"},
            # Chunks would be kept on the node's disk for a second download that never comes.
            {"name": "HF_XET_CHUNK_CACHE_SIZE_BYTES", "value": "0"},
            {"name": "HUB", "value": _HUB},
            {"name": "MARKER", "value": MARKER},
            {"name": "REPOSITORY", "value": uri.split("://", 1)[1]},
            {"name": "REVISION", "value": revision},
            {"name": "TARGET", "value": self.target},
        ]
        if token_secret:
            reference = {"secretKeyRef": {"name": token_secret, "key": "value"}}
            env.append({"name": "HF_TOKEN", "valueFrom": reference})
        labels = model_labels(plan, environment, component="weights-fetch")
        template = {
            "metadata": {"labels": labels},
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "restartPolicy": "OnFailure",
                "securityContext": pod_security_context(),
                "serviceAccountName": plan.name,
                "containers": [
                    {
                        "name": "fetch",
                        "image": PYTHON_IMAGE,
                        "command": ["python3", "-c", FETCH_SCRIPT],
                        "env": env,
                        "resources": {
                            "requests": {"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
                            "limits": {"memory": "4Gi", "ephemeral-storage": "2Gi"},
                        },
                        "securityContext": container_security_context(),
                        "volumeMounts": [
                            {"name": CLAIM, "mountPath": MOUNT_PATH},
                            {"name": "tmp", "mountPath": "/tmp"},
                        ],
                    }
                ],
                "volumes": [
                    {"name": CLAIM, "persistentVolumeClaim": {"claimName": CLAIM}},
                    {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
                ],
            },
        }
        manifest(
            self,
            "Job",
            api_version="batch/v1",
            kind="Job",
            name=f"{plan.name}-fetch-{_digest(template)}",
            namespace=namespace,
            labels=labels,
            annotations=model_annotations(plan),
            spec={"backoffLimit": 10, "template": template},
        )


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
