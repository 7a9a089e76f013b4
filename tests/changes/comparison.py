"""A change of a setting, rendered and synthesised with its old and its new value."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from modelyard.objects.composition import checked_objects
from tests.changes import aws_effects, kubernetes_effects
from tests.changes.kubernetes_effects import Objects
from tests.changes.settings import Change
from tests.synthesised import empty_tree, synthesise_into
from tests.unit.given import a_model, a_plan, an_environment

ENVIRONMENT: dict[str, Any] = {
    "secrets": {name: f"lab/{name}" for name in ("hf-token", "clients", "tls")},
    "pools": {
        "g6e": {"accelerator": "l40s", "limit": 64},
        "more": {"accelerator": "l40s", "limit": 8},
        "p5": {"accelerator": "h100", "limit": 32},
    },
}


def sides(change: Change) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The model and the environment before the change, and after it."""
    both = (change.before, change.after)
    if change.file == "model":
        return [(model, _laid_over(ENVIRONMENT, change.other)) for model in both]
    return [(change.other, _laid_over(ENVIRONMENT, environment)) for environment in both]


def _laid_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes`, mapping by mapping."""
    return {
        key: _laid_over(base[key], changes[key])
        if isinstance(base.get(key), Mapping) and isinstance(changes.get(key), Mapping)
        else changes.get(key, base.get(key))
        for key in {**base, **changes}
    }


def objects(model: Mapping[str, Any], environment: Mapping[str, Any]) -> Objects:
    """All objects of a model in an environment.

    Raises:
        AssertionError: the planner refuses the model.
    """
    plan = a_plan(a_model(**model), environment=an_environment(**environment))
    assert plan.deployable, [str(finding) for finding in plan.findings]
    return {
        (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]): item
        for found in checked_objects(plan).values()
        for item in found
    }


def in_the_cluster(change: Change) -> list[str]:
    """What a delivery does."""
    if not change.before and not change.after:
        return []
    before, after = (objects(*side) for side in sides(change))
    return kubernetes_effects.effects(before, after)


def in_the_account(change: Change) -> list[str]:
    """What a deploy does; a model's file changes no template."""
    if change.file == "model":
        return []
    before, after = (_templates(json.dumps(environment)) for _, environment in sides(change))
    return aws_effects.effects(before, after)


@cache
def _templates(environment: str) -> dict[str, Any]:
    """Stack to template; the rendered tree is empty, so that only the stacks differ."""
    with tempfile.TemporaryDirectory() as folder:
        tree, out = empty_tree(Path(folder) / "tree"), Path(folder) / "out"
        synthesise_into(out, an_environment(**json.loads(environment)), tree)
        suffix = ".template.json"
        return {
            path.name.removesuffix(suffix): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(out.glob(f"*{suffix}"))
        }
