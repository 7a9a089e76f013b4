"""RFC 7386 merge patches over rendered objects: a last resort, checked by the same rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from modelyard.findings import Finding
from modelyard.object_rules.api_schemas import Path, complaints, is_custom
from modelyard.object_rules.pods import INSTANCE, at
from modelyard.planning import Plan
from modelyard.spec.operation import Patch


def merge(target: Any, patch: Any) -> Any:
    """`target` with `patch` applied: mappings merge, null removes, anything else replaces (RFC 7386, section
    2)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def apply_patches(objects: Iterable[dict[str, Any]], patches: Iterable[Patch]) -> list[dict[str, Any]]:
    """Patch every object of the named kind.

    Raises:
        LookupError: a patch names a kind that the model does not render.
    """
    items = list(objects)
    for patch in patches:
        kinds = sorted({item["kind"] for item in items})
        if patch.kind not in kinds:
            raise LookupError(f"patch for kind '{patch.kind}'; this model renders {', '.join(kinds)}")
        items = [merge(item, patch.merge) if item["kind"] == patch.kind else item for item in items]
    return items


def schema_findings(plan: Plan, items: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """What the API server of the environment's Kubernetes version would refuse in `items` by its schema.

    A problem that comes from a patch has the patch's field.

    Raises:
        ModuleNotFoundError: the schemas are not installed.
    """
    patches = {planned.model.name: planned.model.patches for planned in plan.models}
    for item in items:
        if is_custom(item):
            continue
        model = str((at(item, "metadata.labels") or {}).get(INSTANCE, ""))
        for found in complaints(item, plan.environment.cluster.version):
            yield Finding(
                "K8S002",
                f"{item['kind']} {at(item, 'metadata.name')}: {found.message}",
                found.fix,
                subject=model,
                field=_origin(patches.get(model, ()), item["kind"], found.path),
            )


def _origin(patches: Sequence[Patch], kind: str, path: Path) -> tuple[str | int, ...]:
    """The field of the patch that sets the value at `path`: of the last one that reaches deepest."""
    deepest: tuple[str | int, ...] = ("patches",)
    for position, patch in enumerate(patches):
        if patch.kind == kind:
            field: tuple[str | int, ...] = ("patches", position, "merge")
            value: Any = patch.merge
            for step in path:
                if not isinstance(value, dict) or step not in value:
                    break
                field, value = (*field, step), value[step]
            deepest = max(field, deepest, key=len)
    return deepest
