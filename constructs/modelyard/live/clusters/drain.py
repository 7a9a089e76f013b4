"""Draining of a cluster, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.live.api.kubernetes import Item, Kind, LiveCluster, named
from modelyard.live.clusters.drain_steps import DrainStep, own_cluster_steps
from modelyard.live.clusters.kinds import APPLICATION, KUSTOMIZATION, POD
from modelyard.live.clusters.withdrawal import withdrawal_steps
from modelyard.spec import Environment

_SUSPENDED: Final[Mapping[Kind, Mapping[str, Any]]] = {
    KUSTOMIZATION: {"spec": {"suspend": True}},
    APPLICATION: {"spec": {"syncPolicy": {"automated": None}}},
}
# With it, Argo CD deletes what an Application has applied (Argo CD, app deletion).
_CASCADE: Final = {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}


class StillThere(Exception):
    """A step did not finish; later steps were not started."""

    def __init__(self, step: DrainStep, left: list[Item], after_s: float) -> None:
        super().__init__(f"{step.name}: {named(left, 20)} still there after {after_s:g} s")
        self.step = step
        self.left = left


def steps(environment: Environment) -> tuple[DrainStep, ...]:
    """The steps for an environment, in order: of its own cluster, or out of one that stays."""
    return withdrawal_steps(environment) if environment.cluster.existing else own_cluster_steps(environment)


_FIRST_PAUSE_S: Final = 0.25


@dataclass(frozen=True)
class ClusterDrain:
    """Drains a cluster. `say` is called with every step; `within_s` overrides each step's own timeout."""

    cluster: LiveCluster
    say: Callable[[str], None]
    within_s: float | None = None
    every_s: float = 5.0

    def run(self, environment: Environment) -> None:
        """Run all steps. A second run resumes where the first stopped.

        Raises:
            StillThere: a step did not finish in time.
            Unreachable: the cluster refuses, or stopped answering.
        """
        order = steps(environment)
        for step in order:  # a permission missing for a late step shows before the first step starts
            step.left(self.cluster)
        for number, step in enumerate(order, 1):
            self._take(step, f"{number}/{len(order)} {step.name}")

    def _take(self, step: DrainStep, title: str) -> None:
        begun, pause = time.monotonic(), _FIRST_PAUSE_S
        told: list[Item] | None = None
        while left := step.left(self.cluster):
            for item in left:  # every round: a CronJob or a parent Application may have created more
                if step.action == "suspend":
                    self.cluster.patch(item, _SUSPENDED[item.kind])
                elif not (item.deleting or item.owned):
                    if step.action == "uninstall" and item.kind == APPLICATION:
                        self.cluster.patch(item, _CASCADE)
                    self.cluster.delete(item)
            if left != told:
                verb = (
                    "suspending"
                    if step.action == "suspend"
                    else "deleting"
                    if told is None
                    else "waiting for"
                )
                self.say(f"{title}: {verb} {named(left)}")
                told = left
            within = self.within_s if self.within_s is not None else max(step.within_s, *map(_grace_s, left))
            if time.monotonic() - begun >= within and (left := step.left(self.cluster)):
                raise StillThere(step, left, within)
            time.sleep(min(pause, self.every_s))
            pause *= 2
        self.say(f"{title}: {'nothing there' if told is None else 'done'}")


def _grace_s(item: Item) -> float:
    """Grace period: a pod may take as long as its model's longest requests."""
    return float(item.spec.get("terminationGracePeriodSeconds") or 0) + 120 if item.kind == POD else 0
