"""What CloudFormation does when templates change: by the resource schemas that cfn-lint carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

Template = Mapping[str, Any]


def effects(before: Mapping[str, Template], after: Mapping[str, Template]) -> list[str]:
    """What a deploy of `after` does where `before` stands; both are stack to template."""
    return [f"{verb} {_listed(kinds)}" for verb, kinds in changed(before, after).items() if kinds]


def changed(before: Mapping[str, Template], after: Mapping[str, Template]) -> dict[str, list[str]]:
    """Types of resources by what happens to them: they are replaced, added, removed or updated.

    A resource is replaced if a property changes that its type can only be created with, or that refers to a
    resource which is replaced.
    """
    found: dict[str, set[str]] = {verb: set() for verb in ("replaces", "removes", "adds", "updates")}
    for stack in before.keys() | after.keys():
        old, new = (side.get(stack, {}).get("Resources", {}) for side in (before, after))
        found["removes"] |= {old[name]["Type"] for name in old.keys() - new.keys()}
        found["adds"] |= {new[name]["Type"] for name in new.keys() - old.keys()}
        both = [name for name in old.keys() & new.keys() if old[name] != new[name]]
        replaced = {name for name in both if _replaced(old[name], new[name])}
        while more := {name for name in new.keys() & old.keys() - replaced if _made_for(new[name], replaced)}:
            replaced |= more
        found["replaces"] |= {new[name]["Type"] for name in replaced}
        found["updates"] |= {new[name]["Type"] for name in both if name not in replaced}
    return {verb: sorted(kinds - _NOISE) for verb, kinds in found.items()}


# What CDK makes beside other resources, and what nobody sees.
_NOISE = frozenset(
    {"AWS::CDK::Metadata", "AWS::IAM::Policy", "AWS::Lambda::Function", "AWS::Lambda::LayerVersion"}
)
_LONGEST = 4


def _listed(kinds: list[str]) -> str:
    names = [kind.removeprefix("AWS::").replace("::", " ") for kind in kinds]
    more = f" and {len(names) - _LONGEST} more" if len(names) > _LONGEST else ""
    return ", ".join(names[:_LONGEST]) + more


def _replaced(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if old["Type"] != new["Type"]:
        return True
    sides = (old.get("Properties", {}), new.get("Properties", {}))
    return any(_at(sides[0], path) != _at(sides[1], path) for path in create_only(new["Type"]))


def _made_for(resource: Mapping[str, Any], replaced: set[str]) -> bool:
    """Whether a property that it can only be created with refers to one of `replaced`."""
    properties = resource.get("Properties", {})
    return any(
        name in replaced
        for path in create_only(resource["Type"])
        for name in _references(_at(properties, path))
    )


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("Ref"), str):
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield str(value["Fn::GetAtt"][0])
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@cache
def create_only(kind: str) -> tuple[tuple[str, ...], ...]:
    """Paths of the properties of a type whose change CloudFormation answers with a new resource."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-2", kind).schema
    return tuple(tuple(path.split("/")[2:]) for path in schema.get("createOnlyProperties") or ())


def _at(properties: Any, path: tuple[str, ...]) -> Any:
    """The value at `path`; of a list, those of all its items."""
    for place, step in enumerate(path):
        if isinstance(properties, list):
            return [_at(item, path[place:]) for item in properties]
        if not isinstance(properties, Mapping):
            return None
        properties = properties.get(step)
    return properties
