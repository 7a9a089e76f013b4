"""The order in which an environment leaves a cluster that stays: only what Modelyard has made goes.

Its objects are known by their label, and by the namespaces and pools of the environment.
"""

from __future__ import annotations

from typing import Final

from modelyard.live.api.kubernetes import Item, LiveCluster
from modelyard.live.clusters.drain_steps import KARPENTER, WORKLOADS, DrainStep, without_load_balancer
from modelyard.live.clusters.kinds import (
    ADMISSION_POLICIES,
    APPLICATION,
    AUTO_NODE_CLASS,
    BUCKET,
    CONFIG_MAP,
    DEFINITION,
    EXTERNAL_SECRET,
    GATEWAY,
    GIT_REPOSITORY,
    HELM_RELEASE,
    HELM_REPOSITORY,
    INGRESS,
    KUSTOMIZATION,
    NAMESPACE,
    NODE_CLAIM,
    NODE_CLASS,
    NODE_OVERLAY,
    NODE_POOL,
    POD_MONITOR,
    PRIORITY_CLASS,
    PROMETHEUS_RULE,
    SECRET_STORE,
    SERVICE,
    SERVICE_MONITOR,
    STORAGE_CLASS,
    VOLUME,
)
from modelyard.names import FLUX_NAMESPACE, NODE_POOL_LABEL
from modelyard.objects.labels import made_by_us
from modelyard.objects.network import GATEWAYS
from modelyard.objects.platform.general_pool import NAME as GENERAL_POOL
from modelyard.releases import Component, components
from modelyard.spec import Environment

# Kinds that the environment has outside of its namespaces. Their controllers are add-ons, so they go first.
SHARED_KINDS: Final = (
    *(POD_MONITOR, SERVICE_MONITOR, PROMETHEUS_RULE, CONFIG_MAP),
    *(EXTERNAL_SECRET, SECRET_STORE),
    *ADMISSION_POLICIES,
    *(PRIORITY_CLASS, STORAGE_CLASS),
)
# API groups of what is installed, and is no component of an existing cluster.
_FLUX: Final = Component("flux", (), ("toolkit.fluxcd.io",), (), None)
_PROMETHEUS: Final = Component("kube-prometheus-stack", (), ("monitoring.coreos.com",), (), None)


def withdrawal_steps(environment: Environment) -> tuple[DrainStep, ...]:
    """The steps for an environment in a cluster that somebody else manages, in order."""
    # A pool `general` of somebody else keeps its nodes.
    pools = {*environment.pools, *([GENERAL_POOL] if environment.cluster.general_vcpu else [])}
    lived_in = own_namespaces(environment)
    releases = (HELM_RELEASE, APPLICATION)
    return (
        DrainStep(
            "delivery",
            "Flux or Argo CD would bring back what the next steps take away",
            "suspend",
            (KUSTOMIZATION, APPLICATION),
            within_s=60,
            leaves=_others,
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
            "their controller has to run until they are gone",
            "delete",
            (GATEWAY, INGRESS, SERVICE),
            costly=True,
            leaves=lambda item: (
                without_load_balancer(item) or (item.namespace not in lived_in and _others(item))
            ),
        ),
        DrainStep(
            "node pools",
            "Karpenter drains their nodes and gives the instances back",
            "delete",
            (NODE_POOL, NODE_CLAIM),
            within_s=1800,
            costly=True,
            leaves=lambda item: (
                _others(item) if item.kind == NODE_POOL else item.labels.get(NODE_POOL_LABEL) not in pools
            ),
        ),
        DrainStep(
            "node classes",
            "Karpenter cleans up launch templates",
            "delete",
            (NODE_CLASS, AUTO_NODE_CLASS, NODE_OVERLAY),
            costly=True,
            leaves=_others,
        ),
        DrainStep(
            "shared objects",
            "rules, secrets and classes go while their controllers can let go of them",
            "delete",
            SHARED_KINDS,
            leaves=_others,
        ),
        DrainStep(
            "namespaces of models",
            "with what is left in them",
            "delete",
            (NAMESPACE, VOLUME),
            leaves=lambda item: _others(item) or (item.kind == NAMESPACE and item.name not in lived_in),
        ),
        DrainStep(
            "add-ons",
            "Flux or Argo CD uninstalls those that Modelyard has installed",
            "uninstall",
            releases,
            leaves=lambda item: _others(item) or item.name in KARPENTER or not _installs(item),
        ),
        DrainStep(
            "Karpenter",
            "the last controller, if it is Modelyard's",
            "uninstall",
            releases,
            leaves=lambda item: _others(item) or item.name not in KARPENTER,
        ),
        DrainStep("namespaces of add-ons", "they are empty now", "delete", (NAMESPACE,), leaves=_others),
        DrainStep(
            "sources",
            "while a controller takes their finalizers away",
            "delete",
            (KUSTOMIZATION, APPLICATION, HELM_REPOSITORY, GIT_REPOSITORY, BUCKET),
            leaves=lambda item: (
                _others(item) and not (item.kind == BUCKET and item.namespace == FLUX_NAMESPACE)
            ),
        ),
    )


def own_namespaces(environment: Environment) -> frozenset[str]:
    """Namespaces in which nothing else than the environment's models and teams may be."""
    teams = (environment.team_namespace(team) for team in environment.teams)
    return frozenset({environment.namespace, GATEWAYS, *teams})


def left_definitions(cluster: LiveCluster, environment: Environment) -> list[str]:
    """Names of the CRDs that Modelyard's add-ons and Flux have brought: deleting one deletes every object of
    its kind, of whoever, so that is left to somebody who knows.

    Raises:
        Unreachable: no answer, or a refusal.
    """
    ours = [each for each in components().values() if not environment.cluster.has(each.name)]
    if environment.monitoring.enabled and environment.monitoring.install:
        ours.append(_PROMETHEUS)
    if environment.delivery == "flux":
        ours.append(_FLUX)
    return [
        item.name
        for item in cluster.items(DEFINITION)
        if any(each.defines(str(item.spec.get("group"))) for each in ours)
    ]


def _others(item: Item) -> bool:
    return not made_by_us(item.labels)


def _installs(item: Item) -> bool:
    """Whether it is a Helm release: not an Application of the tree's folders, nor one of CRDs, whose objects
    may be anybody's."""
    return item.kind == HELM_RELEASE or bool((item.spec.get("source") or {}).get("chart"))
