"""Autoscalers do not flap, and do not treat missing metrics as no load."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.names import AUTOSCALED_LABEL
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import by_target, labels_of, scaled
from modelyard.object_rules.pods import SERVING, Manifest, at, pod_templates, window

_WINDOW = "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds"
_WINDOW_MOST = 3600  # maximum of the HorizontalPodAutoscaler API


def scaler_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Broken rules of ScaledObjects."""
    workloads = by_target(item for item in items if item["kind"] in SERVING)
    bound = {at(item, "spec.policyName") for item in items if item["kind"].endswith("AdmissionPolicyBinding")}
    kept = any(item["metadata"]["name"] in bound for item in items if _keeps_replicas(item))
    for scaler in items:
        if scaler["kind"] != "ScaledObject":
            continue
        if not at(scaler, "spec.fallback"):
            yield broken(scaler, "has no fallback for a Prometheus that is away", "keep `fallback`")
        for trigger in at(scaler, "spec.triggers") or []:
            told = at(trigger, "metadata.ignoreNullValues")
            if trigger.get("type") == "prometheus" and told != "false":
                yield broken(
                    scaler, "takes a metric that is gone for no load", 'keep ignoreNullValues: "false"'
                )
        quiet = at(scaler, _WINDOW) or 0
        if target := workloads.get(scaled(scaler)):
            if not kept or AUTOSCALED_LABEL not in labels_of(target):
                yield broken(
                    target,
                    "falls to one replica when its fixed number becomes a range",
                    f"keep label {AUTOSCALED_LABEL} and the admission policy that looks for it",
                )
            probe = pod_templates(target)[0]["spec"]["containers"][0].get("startupProbe") or {}
            if quiet < min(window(probe), _WINDOW_MOST):
                yield broken(
                    scaler,
                    f"removes a replica after {quiet} s that takes up to {window(probe)} s to start",
                    "keep the scale-down window above the start-up budget",
                )


def _keeps_replicas(item: Manifest) -> bool:
    conditions = at(item, "spec.matchConditions") if item["kind"].endswith("AdmissionPolicy") else None
    return any(AUTOSCALED_LABEL in str(condition.get("expression")) for condition in conditions or [])
