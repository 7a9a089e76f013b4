"""Rules for our Jobs: none is stopped half-way to save a node, and a lost node is no failure of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from modelyard.findings import Finding
from modelyard.names import DO_NOT_DISRUPT
from modelyard.object_rules.broken import broken
from modelyard.object_rules.pods import NAME, Manifest, at, pod_templates

_OURS: Final = {
    ("app.kubernetes.io/component", "endpoint-check"),
    (NAME, "batch"),
    (NAME, "cache-sweep"),
    (NAME, "weights-fetch"),
}


def one_off_findings(job: Manifest) -> Iterator[Finding]:
    """Downloads, batches and checks that Karpenter may evict, or that fail with their node."""
    if not _OURS & (at(job, "metadata.labels") or {}).items():
        return
    [template] = pod_templates(job)
    if (at(template, "metadata.annotations") or {}).get(DO_NOT_DISRUPT) != "true":
        yield broken(
            job, "may be evicted half-way, for a cheaper node", f"keep the annotation {DO_NOT_DISRUPT}"
        )
    spec = job["spec"]["jobTemplate"]["spec"] if job["kind"] == "CronJob" else job["spec"]
    ignored = [
        condition.get("type")
        for rule in at(spec, "podFailurePolicy.rules") or []
        if rule.get("action") == "Ignore"
        for condition in rule.get("onPodConditions") or []
    ]
    if "DisruptionTarget" not in ignored:
        yield broken(
            job,
            "counts a drained node as a failure of its own, and gives up after a few",
            "keep the rule for DisruptionTarget in podFailurePolicy",
        )
