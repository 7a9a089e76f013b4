"""A Deployment keeps its replicas on the day its fixed number becomes a range.

Its manifest then has no `replicas`. Server-side apply takes a field away that its only owner no longer
states, and the API server fills in the default: one replica, until the autoscaler raises it again, and a
model's replica takes minutes to start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from modelyard.names import AUTOSCALED_LABEL
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest

_NAME: Final = "modelyard-keep-replicas"
_GROUP: Final = "admissionregistration.k8s.io/v1"

# Kubernetes 1.36 made MutatingAdmissionPolicy generally available (KEP-3962); EKS enables no feature before.
_MUTATING_FROM: Final = (1, 36)

_RULES: Final = [
    {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [resource]}
    for group, resource in (("apps", "deployments"), ("leaderworkerset.x-k8s.io", "leaderworkersets"))
]

# An autoscaler writes to the subresource `scale`, which these rules do not match.
_AUTOSCALED: Final = {
    "name": "autoscaled",
    "expression": f"has(object.metadata.labels) && '{AUTOSCALED_LABEL}' in object.metadata.labels",
}
_FEWER: Final = {"name": "fewer", "expression": "object.spec.replicas < oldObject.spec.replicas"}

# A second owner: a field that somebody else states is not taken away.
_REFUSAL: Final = (
    "would start again from <string(object.spec.replicas)> of <string(oldObject.spec.replicas)> replicas; hand them"
    """ over first: echo '{"apiVersion":"<object.apiVersion>","kind":"<object.kind>","metadata":{"name":"""
    """"<object.metadata.name>","namespace":"<object.metadata.namespace>"},"spec":{"replicas":"""
    """<string(oldObject.spec.replicas)>}}' | kubectl apply --server-side --field-manager modelyard-handover -f -"""
)


def kept_replicas(version: str) -> Iterator[Manifest]:
    """The admission policy, and its binding.

    From Kubernetes 1.36 the policy puts the former number back. Older versions refuse the update, with the
    command that lets it pass.

    Args:
        version: Kubernetes minor version, such as 1.36.
    """
    mutating = tuple(int(part) for part in version.split(".")) >= _MUTATING_FROM
    kind = f"{'Mutating' if mutating else 'Validating'}AdmissionPolicy"
    labels = platform_labels("scaling")
    spec: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": _RULES},
        "matchConditions": [_AUTOSCALED, _FEWER] if mutating else [_AUTOSCALED],
    }
    if mutating:
        patch = '[JSONPatch{op: "replace", path: "/spec/replicas", value: oldObject.spec.replicas}]'
        spec |= {
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        }
    else:
        spec["validations"] = [
            {
                "expression": f"!({_FEWER['expression']})",
                "messageExpression": _expression(_REFUSAL),
            }
        ]
    yield manifest(api_version=_GROUP, kind=kind, name=_NAME, labels=labels, spec=spec)
    binding = {"policyName": _NAME} if mutating else {"policyName": _NAME, "validationActions": ["Deny"]}
    yield manifest(api_version=_GROUP, kind=f"{kind}Binding", name=_NAME, labels=labels, spec=binding)


def _expression(text: str) -> str:
    """A CEL expression for `text`, whose <parts> are expressions."""
    parts = re.split("<(.+?)>", text)
    return " + ".join(part if place % 2 else json.dumps(part) for place, part in enumerate(parts))
