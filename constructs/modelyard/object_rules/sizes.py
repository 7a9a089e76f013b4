"""Objects that the API server rejects for size or spelling, which schemas do not check."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from modelyard.findings import Finding
from modelyard.names import CACHE_SIZE
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import Manifest, at
from modelyard.spec.labels import is_label_value, is_qualified_name

ANNOTATIONS_BYTES: Final = 256 << 10
"""Keys and values together (apimachinery, TotalAnnotationSizeLimitB)."""
DATA_BYTES: Final = 1 << 20
"""Maximum of a ConfigMap (Kubernetes, MaxSecretSize, which applies to both kinds)."""


def size_findings(items: Iterable[Manifest]) -> Iterator[Finding]:
    """Objects that are too large, and invalid labels and annotations."""
    for item in items:
        for metadata in _metadata(item):
            yield from _metadata_findings(item, metadata)
        static = item["kind"] == "PersistentVolumeClaim" and at(item, "spec.volumeName")
        if static and (claimed := at(item, "spec.resources.requests.storage")) != CACHE_SIZE:
            yield broken(
                item,
                f"claims {claimed} of a volume that exists, and such a claim is never resized",
                f"keep {CACHE_SIZE}, which every release claims: the file system grows by itself",
            )
        data = item.get("data")
        if item["kind"] == "ConfigMap" and isinstance(data, dict) and (size := _bytes(data)) > DATA_BYTES:
            yield broken(item, f"data has {size:,} bytes", f"use at most {DATA_BYTES:,}")


def _metadata_findings(item: Manifest, metadata: dict[str, Any]) -> Iterator[Finding]:
    annotations, labels = metadata.get("annotations"), metadata.get("labels")
    if isinstance(annotations, dict):
        if (size := _bytes(annotations)) > ANNOTATIONS_BYTES:
            yield broken(item, f"annotations have {size:,} bytes", f"use at most {ANNOTATIONS_BYTES:,}")
        for key in annotations:
            if not is_qualified_name(str(key).lower()):
                yield broken(item, f"annotation '{str(key)[:80]}' is no key", "use [DOMAIN/]NAME")
    if isinstance(labels, dict):
        for key, value in labels.items():
            if not is_qualified_name(str(key)):
                yield broken(item, f"label '{str(key)[:80]}' is no key", "use [DOMAIN/]NAME")
            elif not is_label_value(str(value)):
                yield broken(
                    item,
                    f"the value of label {key} is none: {len(str(value))} characters, or signs that labels do not have",
                    "use at most 63 letters, digits, '-', '_' and '.'",
                )


def _metadata(value: Any) -> Iterator[dict[str, Any]]:
    """The object's own metadata, and that of its pod templates."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if isinstance(metadata := found.get("metadata"), dict):
                yield metadata
            waiting += [found[key] for key in _WITH_METADATA & found.keys()]


_WITH_METADATA: Final = frozenset(
    ("spec", "template", "jobTemplate", "leaderWorkerTemplate", "leaderTemplate", "workerTemplate")
)


def _bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
