"""Folders of the model cache that rendered objects use, which the sweep must know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from modelyard.findings import Finding
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import NAME, WORKLOADS, Manifest, at, containers, pod_templates, variables

SWEEP: Final = "cache-sweep"
"""Name of the sweep's CronJob, and of its label."""
NAMED: Final = "NAMED"
"""Its variable with the folders that models name, as a JSON list."""

_MODELS: Final = "/models/"
_REVISION: Final = re.compile(r"/models/(hf/[^/\s=]+/[^/\s=]+/[^/\s=\"',]+)")
_KERNELS: Final = "compile/"


def folders_in_use(items: Iterable[Manifest]) -> set[str]:
    """Folders, relative to the cache's root: what fetch jobs fill, what servers
    load, and where they keep kernels."""
    found: set[str] = set()
    for item in items:
        if item["kind"] not in WORKLOADS or _is_sweep(item):
            continue
        for template in pod_templates(item):
            for container in containers(template["spec"]):
                target = variables(container).get("TARGET")
                if isinstance(target, str) and target.startswith(_MODELS):
                    found.add(target.removeprefix(_MODELS))
                text = " ".join(map(str, container.get("args") or ()))
                found |= set(_REVISION.findall(text))
                found |= {
                    folder
                    for mount in container.get("volumeMounts") or []
                    if (folder := str(mount.get("subPath") or "")).startswith(_KERNELS)
                }
    return found


def sweep_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Sweeps that do not know a folder in use: they would delete it in weeks."""
    for item in items:
        if not _is_sweep(item):
            continue
        [template] = pod_templates(item)
        stated = variables(template["spec"]["containers"][0]).get(NAMED)
        try:
            known = set(json.loads(stated)) if isinstance(stated, str) else set()
        except ValueError:
            known = set()
        for folder in sorted(folders_in_use(items) - known)[:3]:
            yield broken(item, f"would delete {folder}, which is in use", f"keep it in its variable {NAMED}")


def _is_sweep(item: Manifest) -> bool:
    return item["kind"] == "CronJob" and (at(item, "metadata.labels") or {}).get(NAME) == SWEEP
