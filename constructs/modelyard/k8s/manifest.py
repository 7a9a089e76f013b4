"""One Kubernetes object from plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from cdk8s import ApiObject, ApiObjectMetadata, JsonPatch
from constructs import Construct

Manifest = dict[str, Any]

_collected: ContextVar[list[Manifest] | None] = ContextVar("collected", default=None)


@contextmanager
def collected() -> Iterator[list[Manifest]]:
    """The objects of all constructs that are made inside, as plain data, and not as children of these constructs.

    An ApiObject takes three messages to the process that jsii runs, and one more for what it has become. Whoever wants the
    data alone, of thousands of objects, need not wait for them; everybody else's `app.synth()` gives the same.
    """
    objects: list[Manifest] = []
    token = _collected.set(objects)
    try:
        yield objects
    finally:
        _collected.reset(token)


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
) -> None:
    """Add an object; `body` holds its further top-level fields, such as `spec`, with Kubernetes' own names.

    Names are explicit: other objects, and people, refer to them.
    """
    if (objects := _collected.get()) is not None:
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        }
        stated = {key: value for key, value in metadata.items() if value}
        objects.append({"apiVersion": api_version, "kind": kind, "metadata": stated, **body})
        return
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
