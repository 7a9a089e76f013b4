"""A broken rule as a finding that names the object, the rule and the fix."""

from __future__ import annotations

from modelyard.findings import Finding
from modelyard.object_rules.pods import INSTANCE, Manifest, at


def broken(item: Manifest, message: str, fix: str, *, code: str = "K8S001") -> Finding:
    labels = at(item, "metadata.labels") or {}
    return Finding(
        code,
        f"{item.get('kind', 'object')} {at(item, 'metadata.name') or 'without a name'}: {message}",
        fix,
        subject=labels.get(INSTANCE, ""),
        field=("patches",),
    )
