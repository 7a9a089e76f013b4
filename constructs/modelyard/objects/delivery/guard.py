"""Flux leaves objects of others alone, in a cluster that it shares with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.labels import PART_OF, platform_labels
from modelyard.objects.manifest import Manifest, manifest

_GROUP: Final = "admissionregistration.k8s.io/v1"
_NAME: Final = "modelyard-leaves-others-alone"
_USER: Final = f"system:serviceaccount:{FLUX_NAMESPACE}:kustomize-controller"

# Flux marks what it applies; Modelyard marks what it renders.
_MARKS: Final = {
    "kustomize.toolkit.fluxcd.io/namespace": FLUX_NAMESPACE,
    "app.kubernetes.io/managed-by": PART_OF,
}

# Of which Flux writes the finalizers, and its own events.
_ITS_OWN: Final = [
    {"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": resources}
    for group, resources in (
        ("kustomize.toolkit.fluxcd.io", ["*"]),
        ("coordination.k8s.io", ["leases"]),
        ("events.k8s.io", ["events"]),
        ("", ["events"]),
    )
]


def guard() -> Iterator[Manifest]:
    """An admission policy, and its binding: the kustomize controller changes no object that neither carries
    its own mark nor Modelyard's. Server-side apply would take such an object over, because it has the name of
    a rendered one; a namespace of others would get rules that refuse their pods."""
    marks = [f"oldObject.metadata.labels[?'{key}'].orValue('') == '{value}'" for key, value in _MARKS.items()]
    says = (
        "object.kind + ' ' + object.metadata.name + ' was there before, and is not of Modelyard: "
        "give ours another name in the environment file'"
    )
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"]}
            ],
            "excludeResourceRules": _ITS_OWN,
        },
        "matchConditions": [{"name": "flux", "expression": f"request.userInfo.username == '{_USER}'"}],
        "validations": [
            {
                "expression": f"has(oldObject.metadata.labels) && ({' || '.join(marks)})",
                "messageExpression": says,
            }
        ],
    }
    labels = platform_labels("delivery")
    kind = "ValidatingAdmissionPolicy"
    yield manifest(api_version=_GROUP, kind=kind, name=_NAME, labels=labels, spec=spec)
    binding = {"policyName": _NAME, "validationActions": ["Deny"]}
    yield manifest(api_version=_GROUP, kind=f"{kind}Binding", name=_NAME, labels=labels, spec=binding)
