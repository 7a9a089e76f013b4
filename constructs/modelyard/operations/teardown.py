"""The order in which a cluster is emptied: each step while the controllers that it needs are still there.

A stack that is destroyed earlier takes the controller away from under its nodes: finalizers never clear, instances and
their interfaces stay, and the VPC cannot be deleted (karpenter-provider-aws #1134, #6870; aws-cdk #12130).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from modelyard.operations.cluster import Cluster, Item, Kind, named
from modelyard.spec import Environment

KUSTOMIZATION: Final = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
HELM_RELEASE: Final = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
APPLICATION: Final = Kind("argoproj.io", "v1alpha1", "Application", "applications")
SCALED_OBJECT: Final = Kind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
CRON_JOB: Final = Kind("batch", "v1", "CronJob", "cronjobs")
JOB: Final = Kind("batch", "v1", "Job", "jobs")
LEADER_WORKER_SET: Final = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments")
POD: Final = Kind("", "v1", "Pod", "pods")
GATEWAY: Final = Kind("gateway.networking.k8s.io", "v1", "Gateway", "gateways")
SERVICE: Final = Kind("", "v1", "Service", "services")
NODE_POOL: Final = Kind("karpenter.sh", "v1", "NodePool", "nodepools", namespaced=False)
NODE_CLAIM: Final = Kind("karpenter.sh", "v1", "NodeClaim", "nodeclaims", namespaced=False)
NODE_OVERLAY: Final = Kind("karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays", namespaced=False)
NODE_CLASS: Final = Kind("karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses", namespaced=False)
AUTO_NODE_CLASS: Final = Kind("eks.amazonaws.com", "v1", "NodeClass", "nodeclasses", namespaced=False)

_SUSPENDED: Final[Mapping[Kind, Mapping[str, Any]]] = {
    KUSTOMIZATION: {"spec": {"suspend": True}},
    APPLICATION: {"spec": {"syncPolicy": {"automated": None}}},
}
# Pools and a class that EKS Auto Mode keeps by itself; they go with the cluster.
_BUILT_IN: Final = {(NODE_POOL, "system"), (NODE_POOL, "general-purpose"), (AUTO_NODE_CLASS, "default")}


@dataclass(frozen=True)
class Step:
    """One step: what of the cluster it takes away, and what has to be gone before the next one."""

    name: str
    why: str
    action: Literal["suspend", "delete"]
    kinds: tuple[Kind, ...]
    gone: tuple[Kind, ...]  # waited for; these need not be deleted by us
    namespace: str = "*"
    within_s: int = 600
    keeps: Callable[[Item], bool] = lambda item: False

    def targets(self, cluster: Cluster) -> list[Item]:
        """What is there to be suspended or deleted."""
        return [item for kind in self.kinds for item in self._items(cluster, kind)]

    def left(self, cluster: Cluster) -> list[Item]:
        """What still keeps the next step from beginning."""
        return [item for kind in self.gone for item in self._items(cluster, kind)]

    def _items(self, cluster: Cluster, kind: Kind) -> list[Item]:
        return [
            item
            for item in cluster.items(kind, self.namespace)
            if not self.keeps(item) and (item.kind, item.name) not in _BUILT_IN
        ]


class StillThere(Exception):
    """A step did not come to its end; nothing after it was begun."""

    def __init__(self, step: Step, left: list[Item]) -> None:
        super().__init__(f"{step.name}: {named(left)} still there after {step.within_s} s")
        self.step = step
        self.left = left


def steps(environment: Environment) -> tuple[Step, ...]:
    """The steps for an environment, in order."""
    models = environment.namespace
    return (
        Step(
            "delivery",
            "Flux or Argo CD would bring back what the next steps take away",
            "suspend",
            (KUSTOMIZATION, APPLICATION),
            (),
        ),
        Step(
            "models",
            "running requests are drained, and nothing asks for nodes any more",
            "delete",
            (SCALED_OBJECT, CRON_JOB, JOB, LEADER_WORKER_SET, DEPLOYMENT),
            (POD,),
            namespace=models,
        ),
        Step(
            "load balancers",
            "their interfaces would keep subnets and security groups from being deleted",
            "delete",
            (GATEWAY, SERVICE),
            (GATEWAY, SERVICE),
            keeps=_no_load_balancer,
        ),
        Step(
            "node pools",
            "Karpenter drains its nodes and gives the instances back; it has to run until the last is gone",
            "delete",
            (NODE_POOL,),
            (NODE_POOL, NODE_CLAIM),
            within_s=1800,
        ),
        Step(
            "node classes",
            "Karpenter cleans up launch templates and instance profiles",
            "delete",
            (NODE_CLASS, AUTO_NODE_CLASS, NODE_OVERLAY),
            (NODE_CLASS, AUTO_NODE_CLASS),
        ),
        Step(
            "releases",
            "Flux uninstalls the controllers, Karpenter among them",
            "delete",
            (HELM_RELEASE,),
            (HELM_RELEASE,),
        ),
    )


def remaining(environment: Environment, cluster: Cluster) -> list[Item]:
    """What makes it wrong to destroy the stacks now: nodes, node classes and load balancers."""
    kept = {"load balancers", "node pools", "node classes"}
    return [item for step in steps(environment) if step.name in kept for item in step.left(cluster)]


@dataclass(frozen=True)
class Drain:
    """Empties a cluster. `say` hears of every step; `pause` waits, so that a test need not."""

    cluster: Cluster
    say: Callable[[str], None]
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    every_s: float = 5.0

    def run(self, environment: Environment) -> None:
        """Go through all steps.

        Raises:
            StillThere: a step did not finish in its time.
            Unreachable: the cluster stopped answering.
        """
        for step in steps(environment):
            self._take(step)

    def _take(self, step: Step) -> None:
        targets = step.targets(self.cluster)
        if not targets and not step.left(self.cluster):
            self.say(f"{step.name}: nothing there")
            return
        for item in targets:
            if step.action == "suspend":
                self.cluster.patch(item, _SUSPENDED[item.kind])
            elif not item.deleting:
                self.cluster.delete(item)
        self.say(f"{step.name}: {'suspended' if step.action == 'suspend' else 'deleting'} {len(targets)}")
        deadline = self.now() + step.within_s
        told: list[Item] = []
        while left := step.left(self.cluster):
            if self.now() >= deadline:
                raise StillThere(step, left)
            if left != told:
                self.say(f"  waiting for {named(left)}")
                told = left
            self.pause(self.every_s)


def _no_load_balancer(item: Item) -> bool:
    return item.kind is SERVICE and item.content.get("spec", {}).get("type") != "LoadBalancer"
