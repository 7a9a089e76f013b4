"""A plan to a tree of files, for a cluster or for something else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from modelyard.findings import Finding
from modelyard.object_rules import check_objects
from modelyard.objects.composition import Folders, Hook, RenderError, checked_objects
from modelyard.objects.targets.compose import compose_file, compose_obstacle
from modelyard.objects.targets.kserve import KSERVE, with_kserve
from modelyard.objects.targets.simulator import simulated, simulator
from modelyard.objects.tree import tree_contents
from modelyard.objects.yaml_text import to_yaml
from modelyard.planning import Plan
from modelyard.writing import Rendering, write_tree_files

Target = Literal["kubernetes", "compose", "kserve", "sim"]


@dataclass(frozen=True)
class TargetRendering(Rendering):
    """What was written, and why some models were left out."""

    left_out: tuple[Finding, ...] = ()


def render(
    plan: Plan,
    out: Path,
    target: Target = "kubernetes",
    *,
    hook: Hook | None = None,
    overwrite: bool = False,
) -> TargetRendering:
    """Write `plan` for `target` below `out`; nothing is written when an object breaks a rule.

    Raises:
        RenderError: an object, most likely a patched one, breaks a rule.
        NotWritten: something of somebody else would be lost without `overwrite`, or the files cannot be
            written.
    """
    with _collector_paused():
        content, left_out = target_contents(plan, target, hook=hook)
        written = write_tree_files(out, content, overwrite=overwrite)
    return TargetRendering(**vars(written), left_out=tuple(left_out))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Objects do not refer to themselves: Python's collector of cycles would go through all of them again and
    again."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def target_contents(
    plan: Plan, target: Target, *, hook: Hook | None = None
) -> tuple[dict[Path, str], list[Finding]]:
    """Path to text, and which models `target` leaves out.

    Raises:
        RenderError: an object, most likely a patched one, breaks a rule.
    """
    if target == "compose":
        obstacles = [compose_obstacle(model) for model in plan.models]
        files = {
            Path(model.name) / "compose.yaml": to_yaml(compose_file(model))
            for model, obstacle in zip(plan.models, obstacles, strict=True)
            if obstacle is None
        }
        # Both roles of a disaggregated model have the same reason.
        return files, list({found.subject: found for found in obstacles if found}.values())
    folders, left_out = target_objects(plan, target, hook=hook)
    return tree_contents(folders), left_out


def target_objects(plan: Plan, target: Target, *, hook: Hook | None = None) -> tuple[Folders, list[Finding]]:
    """Folder to objects for a cluster, and which models are left out.

    A target is the plan with another runner, from which all objects are made; hook, patches and rules come
    after that, as in Kubernetes, and last the pods of simulators, or KServe's services around the pods. The
    rules are asked again about simulators: of LLMInferenceServices they know nothing.

    Raises:
        RenderError: an object breaks a rule.
    """
    if target == "sim":
        simulators, left_out = simulated(plan, checked_objects(plan.run_by(simulator()), hook))
        if findings := check_objects(item for objects in simulators.values() for item in objects):
            raise RenderError(findings)
        return simulators, left_out
    if target == "kserve":
        return with_kserve(plan, checked_objects(plan.run_by(KSERVE), hook))
    return checked_objects(plan, hook), []
