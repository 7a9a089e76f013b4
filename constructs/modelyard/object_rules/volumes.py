"""Rules for claims in pods: each is one volume, and what is only read is mounted read-only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import Manifest, at, containers

_READ = ("/models", "/local")


def volume_findings(workload: Manifest, spec: Manifest, *, runs_engine: bool) -> Iterator[Finding]:
    """Claims that the kubelet would mount once and wait for twice, and weights that servers could write."""
    claims = Counter(
        wanted
        for volume in spec.get("volumes") or []
        if (wanted := at(volume, "persistentVolumeClaim.claimName"))
    )
    for name, count in claims.items():
        if count > 1:
            yield broken(
                workload,
                f"has {count} volumes of claim {name}, of which the kubelet mounts one: the pod never starts",
                "keep one volume and several mounts, with readOnly in the mount",
            )
    if not runs_engine:
        return
    for container in containers(spec):
        for mount in container.get("volumeMounts") or []:
            path = mount.get("mountPath")
            copies = container.get("name") == "copy-weights" and path == "/local"
            if path in _READ and not copies and mount.get("readOnly") is not True:
                yield broken(workload, f"can write to its weights in {path}", "keep readOnly: true")
