"""One Kubernetes object from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct


def manifest(
    scope: Construct,
    construct_id: str,
    *,
    api_version: str,
    kind: str,
    name: str,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> ApiObject:
    """Add an object; `body` holds its further top-level fields, such as `spec`, with Kubernetes' own names.

    Names are explicit: other objects, and people, refer to them.
    """
    result = ApiObject(
        scope,
        construct_id,
        api_version=api_version,
        kind=kind,
        metadata=ApiObjectMetadata(
            name=name,
            namespace=namespace,
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
        ),
    )
    for field, value in sorted(body.items()):
        result.add_json_patch(JsonPatch.add(f"/{field}", value))
    return result
