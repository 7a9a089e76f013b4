"""Mistakes in custom resources that their CRDs refuse: kind, path, value, and what our own check says."""

from __future__ import annotations

from typing import Any

_REQUIREMENT = ("spec", "template", "spec", "requirements", 0)

MISTAKES: tuple[tuple[str, tuple[Any, ...], object, str], ...] = (
    ("NodePool", ("spec", "limit"), {}, "Additional properties are not allowed"),
    ("NodePool", ("spec", "disruption", "consolidateAfter"), "soon", "does not match"),
    (
        "NodePool",
        (*_REQUIREMENT, "values"),
        [],
        "requirements with operator 'In' must have a value defined",
    ),
    ("NodePool", (*_REQUIREMENT, "key"), "karpenter.sh/instance-family", "is restricted"),
    (
        "NodePool",
        ("spec", "disruption", "budgets", 0, "schedule"),
        "0 4 * * *",
        "'schedule' must be set with 'duration'",
    ),
    ("EC2NodeClass", ("spec", "role"), "node", "must specify exactly one of ['role', 'instanceProfile']"),
    ("EC2NodeClass", ("spec", "amiSelectorTerms", 0, "alias"), "al2023", "improperly formatted"),
    ("EC2NodeClass", ("spec", "amiSelectorTerms", 0, "alias"), "beos@v1", "family is not supported"),
    ("EC2NodeClass", ("spec", "tags", "eks:eks-cluster-name"), "x", "restricted tag"),
    ("ScaledObject", ("spec", "minReplicaCount"), 100, "minReplicaCount"),
    ("ScaledObject", ("spec", "triggers", 0, "metricType"), 1, "is not of type 'string'"),
    ("ServiceMonitor", ("spec", "endpoints", 0, "interval"), "often", "does not match"),
    ("PodMonitor", ("spec", "podMetricsEndpoints", 0, "portNumber"), "metrics", "is not of type"),
    ("PrometheusRule", ("spec", "groups", 0, "rules", 0, "expr"), None, "is not of type"),
    ("ExternalSecret", ("spec", "data", 0, "secretKey"), None, "None is not of type 'string'"),
)
