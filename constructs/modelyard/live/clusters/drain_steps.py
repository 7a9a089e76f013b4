"""The order in which a cluster is drained: each step runs while the controllers that it needs still exist.

Destroying a stack too early deletes the controller while its nodes exist: finalizers never clear, instances
and their network interfaces stay, and the VPC cannot be deleted (karpenter-provider-aws #1134, #6870; aws-cdk
#12130).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from modelyard.live.api.kubernetes import Item, Kind, LiveCluster
from modelyard.live.clusters.kinds import (
    APPLICATION,
    AUTO_NODE_CLASS,
    CRON_JOB,
    DEPLOYMENT,
    GATEWAY,
    HELM_RELEASE,
    INGRESS,
    JOB,
    KUSTOMIZATION,
    LEADER_WORKER_SET,
    NODE_CLAIM,
    NODE_CLASS,
    NODE_OVERLAY,
    NODE_POOL,
    POD,
    SCALED_OBJECT,
    SERVICE,
    STATEFUL_SET,
)
from modelyard.names import AUTO_MODE_POOLS, NODE_POOL_LABEL
from modelyard.spec import Environment

WORKLOADS: Final = (SCALED_OBJECT, CRON_JOB, JOB, LEADER_WORKER_SET, STATEFUL_SET, DEPLOYMENT, POD)
KARPENTER: Final = frozenset({"karpenter", "karpenter-crd"})
"""Releases of Karpenter, which go last."""
# The class that EKS Auto Mode manages, like its pools; they go with the cluster, and are recreated when
# deleted.
_AUTO_CLASS: Final = "default"


@dataclass(frozen=True)
class DrainStep:
    """One step: the objects that it deletes, and those that must be gone before the next step.

    `uninstall` deletes them with all that they have applied, which Argo CD does if it is told so.
    """

    name: str
    why: str
    action: Literal["suspend", "delete", "uninstall"]
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
            if not self.leaves(item) and not (self.action == "suspend" and is_suspended(item))
        ]


def own_cluster_steps(environment: Environment) -> tuple[DrainStep, ...]:
    """The steps for a cluster that goes with its environment, in order."""
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
            WORKLOADS,
            namespace=environment.namespace,
        ),
        DrainStep(
            "load balancers",
            "their interfaces would keep subnets and security groups from being deleted",
            "delete",
            (GATEWAY, INGRESS, SERVICE),
            costly=True,
            leaves=without_load_balancer,
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
            leaves=lambda item: item.name in KARPENTER,
        ),
        DrainStep("Karpenter", "the last controller: nothing of its is left", "delete", (HELM_RELEASE,)),
    )


def is_suspended(item: Item) -> bool:
    """Whether Flux or Argo CD leaves alone what the object delivers."""
    if item.kind == KUSTOMIZATION:
        return bool(item.spec.get("suspend"))
    return not (item.spec.get("syncPolicy") or {}).get("automated")


def without_load_balancer(item: Item) -> bool:
    """Whether a Service or an Ingress has no load balancer; a Gateway always has one."""
    if item.kind == SERVICE:
        return item.spec.get("type") != "LoadBalancer"
    return item.kind == INGRESS and not (item.status.get("loadBalancer") or {}).get("ingress")
