"""One model as the checklist sees it: its plan, its rendered objects, and the possible verdicts of a
point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from modelyard.engines import Engine, engine
from modelyard.object_rules.pods import Manifest, flags, named, pod_labels, pod_templates
from modelyard.planning import ModelPlan
from modelyard.spec import Environment


class Result(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "n.a."


@dataclass(frozen=True)
class RenderedModel:
    """One model's plan, all objects of its environment, and the workload that runs it."""

    plan: ModelPlan
    environment: Environment
    objects: tuple[Manifest, ...]
    workload: Manifest

    @cached_property
    def pods(self) -> list[Manifest]:
        """Pod specs of one replica, one per pod, first the pod that answers requests."""
        first, *others = [template["spec"] for template in pod_templates(self.workload)]
        if not others:
            return [first]
        size = int(self.workload["spec"]["leaderWorkerTemplate"].get("size", 1))
        return [first, *others * (size - 1)]

    @property
    def pod(self) -> Manifest:
        return self.pods[0]

    @property
    def server(self) -> Manifest:
        """The engine's container."""
        container: Manifest = self.pod["containers"][0]
        return container

    @cached_property
    def flags(self) -> dict[str, str]:
        return flags(self.server)

    @cached_property
    def labels(self) -> dict[str, str]:
        return pod_labels(self.workload)

    @property
    def engine(self) -> Engine:
        return engine(self.plan.serving.release.engine)

    @property
    def batch(self) -> bool:
        return self.plan.model.batch is not None

    def of(self, kind: str, *, elsewhere: bool = False) -> list[Manifest]:
        """Objects of a kind in the model's namespace, or anywhere."""
        home = named(self.workload)[0]
        return [
            item for item in self.objects if item["kind"] == kind and (elsewhere or named(item)[0] == home)
        ]

    def named(self, kind: str, name: str) -> Manifest | None:
        """The object called `name`, in any namespace."""
        return next((item for item in self.of(kind, elsewhere=True) if named(item)[1] == name), None)


@dataclass(frozen=True)
class Reading:
    """The result of a point's check of the objects."""

    result: Result
    reason: str
    fix: str = ""


Point = Callable[[RenderedModel], Reading]


def passed(reason: str) -> Reading:
    return Reading(Result.PASS, reason)


def failed(reason: str, fix: str) -> Reading:
    return Reading(Result.FAIL, reason, fix)


def beside_the_point(reason: str) -> Reading:
    return Reading(Result.NOT_APPLICABLE, reason)
