"""The CronJob that deletes what no model names any more from the shared cache."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from modelyard.object_rules.cache_folders import NAMED, SWEEP, folders_in_use
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.model_cache import CLAIM, MOUNT_PATH
from modelyard.objects.pods.images import PYTHON
from modelyard.objects.pods.parts import UNDISTURBED, Container, Pod, claim, mount, one_off, variables
from modelyard.objects.serving.weights import MARKER
from modelyard.spec import Environment

_SCRIPT: Final = files("modelyard.objects.serving").joinpath("sweep_cache.py").read_text(encoding="utf-8")
_SUNDAYS: Final = "23 4 * * 0"


def cache_sweep(environment: Environment, objects: Iterable[Manifest]) -> Iterator[Manifest]:
    """The sweep, told of every folder that `objects` use; nothing where it is off or no folder is used."""
    cache = environment.cache
    named = sorted(folders_in_use(objects))
    if cache.sweeping == "off" or not named:
        return
    labels = {
        **platform_labels(SWEEP),
        "app.kubernetes.io/name": SWEEP,
        "modelyard.dev/env": environment.name,
    }
    yield manifest(
        api_version="v1",
        kind="ServiceAccount",
        name=SWEEP,
        namespace=environment.namespace,
        labels=platform_labels(SWEEP),
        automountServiceAccountToken=False,
    )
    told = {
        "DAYS": str(cache.sweep_after_days),
        "MARKER": MARKER,
        "MODE": cache.sweeping,
        NAMED: json.dumps(named),
        "PYTHONUNBUFFERED": "1",
        "ROOT": MOUNT_PATH,
    }
    container = Container(
        name="sweep",
        image=PYTHON,
        command=["python3", "-c", _SCRIPT],
        env=variables(told),
        requests={"cpu": "100m", "memory": "128Mi"},
        limits={"memory": "256Mi"},
        mounts=[mount(CLAIM, MOUNT_PATH)],
    )
    pod = Pod(
        account=SWEEP,
        containers=[container.manifest()],
        volumes=[claim(CLAIM)],
        fields={"restartPolicy": "Never"},
    )
    template = {"metadata": {"labels": labels, "annotations": dict(UNDISTURBED)}, "spec": pod.spec()}
    yield manifest(
        api_version="batch/v1",
        kind="CronJob",
        name=SWEEP,
        namespace=environment.namespace,
        labels=labels,
        spec={
            "schedule": _SUNDAYS,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 4,  # whose logs say what went
            "jobTemplate": {"spec": one_off({"backoffLimit": 1, "template": template})},
        },
    )
