"""All stacks of one environment, in dependency order."""

from __future__ import annotations

from pathlib import Path

from constructs import Construct

from infra.alerts import AlertsStack
from infra.cluster import ClusterStack
from infra.cost import CostStack
from infra.delivery import DeliveryStack
from infra.environment_stack import EnvironmentStack
from infra.karpenter import KarpenterStack
from infra.metrics import MetricsStack
from infra.model_cache import ModelCacheStack
from infra.network import NetworkStack
from infra.registry import RegistryStack
from infra.secrets import SecretsStack
from modelyard.spec import Environment


def add_platform(scope: Construct, settings: Environment, *, tree: Path) -> list[EnvironmentStack]:
    """Add the stacks of `settings` to an App or a pipeline Stage; `tree`: the rendered folder to deliver."""
    network = NetworkStack(scope, "Network", settings=settings)
    cluster = ClusterStack(scope, "Cluster", settings=settings)
    cluster.add_stack_dependency(network, "VPC and subnets, by SSM parameters")
    beside_the_cluster: list[EnvironmentStack] = []
    if settings.cluster.runs_own_karpenter:
        beside_the_cluster.append(KarpenterStack(scope, "Karpenter", settings=settings))
    if ModelCacheStack.needed(settings):
        beside_the_cluster.append(ModelCacheStack(scope, "ModelCache", settings=settings))
    if settings.secrets:
        beside_the_cluster.append(SecretsStack(scope, "Secrets", settings=settings))
    if AlertsStack.needed(settings):
        beside_the_cluster.append(AlertsStack(scope, "Alerts", settings=settings))
    if MetricsStack.needed(settings):
        beside_the_cluster.append(MetricsStack(scope, "Metrics", settings=settings))
    for stack in beside_the_cluster:
        stack.add_stack_dependency(cluster, "access entries and Pod Identity associations need the cluster")
    stacks = [network, cluster, *beside_the_cluster]
    if RegistryStack.needed(settings):
        stacks.append(RegistryStack(scope, "Registry", settings=settings))
    if DeliveryStack.needed(settings):
        delivery = DeliveryStack(scope, "Delivery", settings=settings, tree=tree)
        for stack in stacks:
            delivery.add_stack_dependency(stack, "what the tree mentions must exist when Flux applies it")
        stacks.append(delivery)
    if CostStack.needed(settings):
        cost = CostStack(scope, "Cost", settings=settings)
        # Last, because a deploy and a pipeline's stage stop at the first stack that fails.
        cost.add_stack_dependency(stacks[-1], "an alert that AWS refuses must not keep models from coming up")
        stacks.append(cost)
    return stacks
