"""RFC 7386 merge patches over rendered objects: a last resort, checked by the same rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
