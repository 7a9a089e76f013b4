"""The order in which a cluster is drained: each step runs while the controllers that it needs still exist.

Destroying a stack too early deletes the controller while its nodes exist: finalizers never clear, instances
and their network interfaces stay, and the VPC cannot be deleted (karpenter-provider-aws #1134, #6870; aws-cdk
#12130).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from modelyard.live.api.kubernetes import Item, Kind, LiveCluster, named
from modelyard.names import AUTO_MODE_POOLS, NODE_POOL_LABEL
from modelyard.spec import Environment

KUSTOMIZATION: Final = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
HELM_RELEASE: Final = Kind("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")
APPLICATION: Final = Kind("argoproj.io", "v1alpha1", "Application", "applications")
SCALED_OBJECT: Final = Kind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
CRON_JOB: Final = Kind("batch", "v1", "CronJob", "cronjobs")
JOB: Final = Kind("batch", "v1", "Job", "jobs")
LEADER_WORKER_SET: Final = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
STATEFUL_SET: Final = Kind("apps", "v1", "StatefulSet", "statefulsets")
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments")
POD: Final = Kind("", "v1", "Pod", "pods")
GATEWAY: Final = Kind("gateway.networking.k8s.io", "v1", "Gateway", "gateways")
INGRESS: Final = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")
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
_KARPENTER: Final = {"karpenter", "karpenter-crd"}
# The class that EKS Auto Mode manages, like its pools; they go with the cluster, and are recreated when
# deleted.
_AUTO_CLASS: Final = "default"


@dataclass(frozen=True)
class DrainStep:
    """One step: the objects that it deletes, and those that must be gone before the next step."""

    name: str
    why: str
    action: Literal["suspend", "delete"]
    kinds: tuple[Kind, ...]
    namespace: str = "*"
    within_s: float = 600
    costly: bool = False
    """Whether anything left of it blocks destroying the stacks: it would be orphaned, and cost money."""
    leaves: Callable[[Item], bool] = lambda item: False

    def left(self, cluster: LiveCluster) -> list[Item]:
        """Objects that the step still has to delete, and those that block the next step."""
        items = [item for kind in self.kinds for item in cluster.items(kind, self.namespace)]
        return [
            item
            for item in items
            if not self.leaves(item) and not (self.action == "suspend" and _is_suspended(item))
        ]


class StillThere(Exception):
    """A step did not finish; later steps were not started."""

    def __init__(self, step: DrainStep, left: list[Item], after_s: float) -> None:
        super().__init__(f"{step.name}: {named(left, 20)} still there after {after_s:g} s")
        self.step = step
        self.left = left


def steps(environment: Environment) -> tuple[DrainStep, ...]:
    """The steps for an environment, in order."""
    auto = environment.cluster.auto_mode

    def built_in(item: Item) -> bool:
        pool = item.labels.get(NODE_POOL_LABEL) if item.kind == NODE_CLAIM else item.name
        return auto and pool in AUTO_MODE_POOLS

    return (
        DrainStep(
            "delivery",
            "Flux or Argo CD would bring back what the next steps take away",
            "suspend",
            (KUSTOMIZATION, APPLICATION),
            within_s=60,
        ),
        DrainStep(
            "models",
            "running requests are drained, and nothing asks for nodes any more",
            "delete",
            (SCALED_OBJECT, CRON_JOB, JOB, LEADER_WORKER_SET, STATEFUL_SET, DEPLOYMENT, POD),
            namespace=environment.namespace,
        ),
        DrainStep(
            "load balancers",
            "their interfaces would keep subnets and security groups from being deleted",
            "delete",
            (GATEWAY, INGRESS, SERVICE),
            costly=True,
            leaves=_without_load_balancer,
        ),
        DrainStep(
            "node pools",
            "Karpenter drains its nodes and gives the instances back; it has to run until the last is gone",
            "delete",
            (NODE_POOL, NODE_CLAIM),
            within_s=1800,
            costly=True,
            leaves=built_in,
        ),
        DrainStep(
            "node classes",
            "Karpenter cleans up launch templates",
            "delete",
            (NODE_CLASS, AUTO_NODE_CLASS, NODE_OVERLAY),
            costly=True,
            leaves=lambda item: auto and item.name == _AUTO_CLASS,
        ),
        DrainStep(
            "add-ons",
            "Flux uninstalls them, and has to run for it",
            "delete",
            (HELM_RELEASE,),
            leaves=lambda item: item.name in _KARPENTER,
        ),
        DrainStep("Karpenter", "the last controller: nothing of its is left", "delete", (HELM_RELEASE,)),
    )


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


def _is_suspended(item: Item) -> bool:
    if item.kind == KUSTOMIZATION:
        return bool(item.spec.get("suspend"))
    return not (item.spec.get("syncPolicy") or {}).get("automated")


def _without_load_balancer(item: Item) -> bool:
    if item.kind == SERVICE:
        return item.spec.get("type") != "LoadBalancer"
    return item.kind == INGRESS and not (item.status.get("loadBalancer") or {}).get("ingress")
