"""Findings on the objects of a plan, for commands that write no objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from modelyard.cli.extras import needed_for
from modelyard.cli.workspace import CommandError
from modelyard.findings import Finding
from modelyard.objects.composition import Hook, RenderError, checked_objects
from modelyard.planning import Plan


def rendered_findings(
    plan: Plan, hook: Hook | None, definitions: Path | None
) -> tuple[list[Finding], Iterable[str]]:
    """Broken rules and, with a folder of `definitions`, schema errors of custom resources; also the kinds
    that the folder does not define.

    Raises:
        CommandError: the definitions cannot be read, or their reader is not installed.
    """
    try:
        folders = checked_objects(plan, hook)
    except RenderError as error:
        return error.findings, ()
    if definitions is None:
        return [], ()
    items = [item for objects in folders.values() for item in objects]
    with needed_for("--crds", "crds"):
        from modelyard.object_rules.definitions import UnreadableDefinitions, check_definitions
    try:
        result = check_definitions(items, definitions)
    except UnreadableDefinitions as problem:
        raise CommandError(f"--crds: {problem}") from None
    return list(result.findings), result.unknown
