"""The production checklist as a gate: every point is checked on the rendered objects, not by asking
people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from modelyard.findings import Finding
from modelyard.object_rules.pods import INSTANCE, Manifest, runs_engine
from modelyard.object_rules.points import POINTS
from modelyard.object_rules.subject import RenderedModel, Result, failed
from modelyard.planning import ModelPlan, Plan

__all__ = ["PointVerdict", "Result", "checklist", "checklist_findings"]


@dataclass(frozen=True)
class PointVerdict:
    """The verdict of one point on one model. `fix` is empty unless the point fails."""

    model: str
    point: str
    result: Result
    reason: str
    fix: str = ""


def checklist(plan: Plan, objects: Iterable[Manifest]) -> tuple[PointVerdict, ...]:
    """Every point for every model of `plan`. The rendered `objects` must have passed `check_objects`."""
    items = tuple(objects)
    verdicts = []
    for model in plan.models:
        workload = _workload(model, items)
        for name, point in POINTS.items():
            if workload is None:
                answer = failed("no workload is rendered", "keep its labels and its name")
            else:
                answer = point(RenderedModel(model, plan.environment, items, workload))
            verdicts.append(PointVerdict(model.name, name, answer.result, answer.reason, answer.fix))
    return tuple(verdicts)


def _workload(model: ModelPlan, items: Iterable[Manifest]) -> Manifest | None:
    found = (i for i in items if runs_engine(i) and i["metadata"]["labels"].get(INSTANCE) == model.name)
    return next(found, None)


def checklist_findings(verdicts: Iterable[PointVerdict], *, strict: bool) -> list[Finding]:
    """A finding for every failed point: an error if the environment is strict."""
    findings = [
        Finding(
            "CHECK001",
            f"{verdict.point}: {verdict.reason}",
            verdict.fix,
            subject=verdict.model,
        )
        for verdict in verdicts
        if verdict.result is Result.FAIL
    ]
    return [finding.promoted() for finding in findings] if strict else findings
