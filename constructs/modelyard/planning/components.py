"""Components of the cluster that the models and settings of an environment depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modelyard.hardware import accelerator_of
from modelyard.names import EXTERNAL_SECRETS
from modelyard.planning.records import ModelPlan
from modelyard.spec.environment import Environment


def needed_components(environment: Environment, models: Sequence[ModelPlan]) -> frozenset[str]:
    """Components of `modelyard.releases` that the cluster has to have, whoever installs them."""
    return frozenset(_needed(environment, models))


def missing_components(environment: Environment, models: Sequence[ModelPlan]) -> frozenset[str]:
    """Those that Modelyard installs: the needed ones that an existing cluster does not have."""
    needed = needed_components(environment, models)
    return frozenset(name for name in needed if not environment.cluster.has(name))


# Components that run on the nodes of pools.
_ON_NODES = frozenset(
    {"aws-efa-k8s-device-plugin", "dcgm-exporter", "neuron-device-plugin", "nvidia-device-plugin"}
)


def is_shared(environment: Environment) -> bool:
    """Whether a taint of their own keeps pods of others away from the nodes of pools: in a cluster of others,
    unless its own device plugins or exporters have to run there, which do not tolerate it."""
    existing = environment.cluster.existing
    return existing is not None and not _ON_NODES & existing.has.keys()


def pools_with_plugin(environment: Environment) -> list[str]:
    """Pools whose nodes need NVIDIA's device plugin. Bottlerocket's image brings its own, and two plugins
    would both register the GPUs; EKS Auto Mode has one."""
    if environment.cluster.auto_mode:
        return []
    return [
        name
        for name, pool in environment.pools.items()
        if accelerator_of(pool.accelerator).vendor == "nvidia" and pool.ami.startswith("al2023")
    ]


def _needed(environment: Environment, models: Sequence[ModelPlan]) -> Iterator[str]:
    auto = environment.cluster.auto_mode
    vendors = {accelerator_of(pool.accelerator).vendor for pool in environment.pools.values()}
    if not auto:
        yield "karpenter"
    if pools_with_plugin(environment):
        yield "nvidia-device-plugin"
    if "aws" in vendors and not auto:
        yield "neuron-device-plugin"
    if environment.secrets:
        yield EXTERNAL_SECRETS
    if environment.monitoring.enabled and "nvidia" in vendors:
        yield "dcgm-exporter"
    if any(model.model.autoscaled for model in models):
        yield "keda"
    if any(model.serving.nodes > 1 for model in models):
        yield "lws"
        yield "aws-efa-k8s-device-plugin"
    if any(model.role != "both" for model in models):
        yield "gateway-api-inference-extension"
    if environment.gateways.internal or environment.gateways.public:
        yield "gateway-api"
        yield "istio"
