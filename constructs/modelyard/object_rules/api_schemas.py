"""Objects of Kubernetes' own kinds against the API schema of a Kubernetes version.

Unknown fields are refused, as server-side apply refuses them; `kubectl apply` alone would drop some of them.
Needs the extra `modelyard[crds]`: the schemas of a dozen Kubernetes versions take 100 MB on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from modelyard.reading import short
from modelyard.reading.words import suggestion

Path = tuple[str | int, ...]
_LONGEST_MESSAGE = 160

_BUILT_IN = frozenset(
    f"{name}.k8s.io"
    for name in (
        *("admissionregistration", "authentication", "authorization", "certificates", "coordination"),
        *("discovery", "events", "flowcontrol.apiserver", "networking", "node", "rbac.authorization"),
        *("resource", "scheduling", "storage"),
    )
)


@dataclass(frozen=True)
class Complaint:
    """A field of an object that the API server would refuse: its path, what is wrong, and the way out."""

    path: Path
    message: str
    fix: str


def is_custom(item: Mapping[str, Any]) -> bool:
    """Whether it is a custom resource: an API group with a dot, except groups under `k8s.io` that the API
    server serves."""
    group = str(item["apiVersion"]).rpartition("/")[0]
    return "." in group and group not in _BUILT_IN


def installed() -> bool:
    """Whether the schemas are there to be checked against."""
    return find_spec("kubernetes_validate") is not None


def complaints(item: Mapping[str, Any], version: str) -> list[Complaint]:
    """Why an API server of `version`, such as 1.36, would refuse `item`, by its schema.

    A version newer than all known ones is judged by the newest. `item` has an apiVersion and a kind, and is
    no custom resource.

    Raises:
        ModuleNotFoundError: the schemas are not installed.
    """
    validator = _validator(str(item["apiVersion"]), str(item["kind"]), version)
    if validator is None:
        message = f"Kubernetes {version} has no {item['kind']} in {item['apiVersion']}"
        return [Complaint(("kind",), message, "correct apiVersion and kind")]
    return [found for error in validator.iter_errors(item) for found in _told(error)]


@cache
def _validator(api_version: str, kind: str, version: str) -> Any | None:
    """None if the version has no such kind."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from kubernetes_validate.utils import schema_contents  # type: ignore[import-untyped]
    from referencing import Registry, Resource

    folder = f"kubernetes-json-schema/v{_known(version)}-local-strict"
    group, _, name = api_version.rpartition("/")
    prefix = f"{group.partition('.')[0]}-" if group else ""
    try:
        schema = schema_contents(f"{folder}/{kind.lower()}-{prefix}{name}.json", version)
    except FileNotFoundError:
        return None
    definitions: Registry[Any] = Resource.from_contents(_definitions(folder, version)) @ Registry()
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ definitions)


@cache
def _definitions(folder: str, version: str) -> Any:
    from kubernetes_validate.utils import schema_contents

    return schema_contents(f"{folder}/_definitions.json", version)


@cache
def _known(version: str) -> str:
    """The newest known version that is not newer than `version`; the oldest if all are."""
    from kubernetes_validate.utils import all_versions

    wanted = [int(part) for part in version.split(".")[:2]]
    known: list[str] = all_versions()
    return [known[0], *(each for each in known if [int(part) for part in each.split(".")[:2]] <= wanted)][-1]


def _told(error: Any) -> Iterator[Complaint]:
    path: Path = tuple(error.absolute_path)
    where = _shown(path)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        for field in sorted(set(error.instance) - set(known)):
            near = suggestion(str(field), known).strip()
            yield Complaint(
                (*path, field),
                f"{where} has no field {short(str(field))}",
                near or f"known fields are {', '.join(sorted(known))}",
            )
    elif error.validator == "required":
        for field in error.validator_value:
            if field not in error.instance:
                yield Complaint(path, f"{where} lacks {field}", "add it")
    elif error.validator == "type":
        allowed = error.validator_value
        kinds = [allowed] if isinstance(allowed, str) else [kind for kind in allowed if kind != "null"]
        got = short(json.dumps(error.instance, default=str))
        yield Complaint(path, f"{where} must be of type {' or '.join(kinds)}, got {got}", "correct the value")
    else:
        yield Complaint(path, f"{where}: {short(error.message, _LONGEST_MESSAGE)}", "correct the value")


def _shown(path: Path) -> str:
    """A path as people write it, such as spec.containers[0].image."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "the object"
