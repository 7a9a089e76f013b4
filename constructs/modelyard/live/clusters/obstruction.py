"""Why an object is not deleted, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubernetes import Item, LiveCluster
from modelyard.live.clusters.kinds import (
    APPLICATION,
    AUTO_NODE_CLASS,
    GATEWAY,
    HELM_RELEASE,
    INGRESS,
    KUSTOMIZATION,
    NODE_CLAIM,
    NODE_CLASS,
    NODE_POOL,
    POD,
    SCALED_OBJECT,
    SERVICE,
)
from modelyard.names import DO_NOT_DISRUPT

_ADVICE = {
    KUSTOMIZATION: "something sets `suspend` back: stop what applies it",
    APPLICATION: "something turns its synchronisation on again: a parent Application, or an ApplicationSet",
    SCALED_OBJECT: "KEDA takes the finalizer away; is it running? kubectl -n keda get pods",
    POD: "it ends its requests; or its node is gone: kubectl describe it",
    GATEWAY: "its controller deletes the load balancer; is it running? kubectl describe it",
    INGRESS: "its controller deletes the load balancer; is it running? kubectl describe it",
    SERVICE: "the cloud controller deletes the load balancer first; its events say what fails: kubectl describe it",
    NODE_POOL: "its NodeClaims have to go first",
    NODE_CLASS: "a NodeClaim still uses it, or Karpenter does not run: kubectl -n kube-system get deployment karpenter",
    AUTO_NODE_CLASS: "a NodeClaim still uses it",
    HELM_RELEASE: "helm-controller uninstalls it; its conditions say what fails: kubectl -n flux-system describe it",
}


def reasons(cluster: LiveCluster, item: Item) -> Iterator[str]:
    """Known reasons why an object stays, most specific first."""
    for condition in item.status.get("conditions") or ():
        if condition.get("status") != "True" and condition.get("message"):
            yield f"{condition.get('type')}: {condition['message']}"
    if item.kind == NODE_CLAIM:
        yield from _of_node(cluster, item)
    elif advice := _ADVICE.get(item.kind):
        yield advice


def _of_node(cluster: LiveCluster, claim: Item) -> Iterator[str]:
    node = claim.status.get("nodeName")
    try:
        pods = [pod for pod in cluster.items(POD) if node and pod.spec.get("nodeName") == node]
    except Unreachable as why:
        pods = []
        yield f"its pods: {why}"
    for pod in pods:
        if pod.annotations.get(DO_NOT_DISRUPT) == "true":
            yield f"{pod} has {DO_NOT_DISRUPT}: Karpenter waits for it; delete it, or let it end"
    if not claim.deleting:
        yield "nothing has deleted it: kubectl delete nodeclaim it, and run this again"
    elif claim.finalizers:
        yield (
            "Karpenter takes the finalizer away when the instance is gone; is it running? kubectl -n kube-system get "
            "deployment karpenter; does a PodDisruptionBudget block? kubectl get pdb -A"
        )
