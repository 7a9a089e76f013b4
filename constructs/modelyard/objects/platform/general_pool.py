"""On-demand CPU nodes: for weight downloads, and for pods that do not fit on the fixed system nodes."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.node_class import (
    NodeClass,
    instance_label,
    lifetime,
    node_class,
    node_class_reference,
    one_of,
)
from modelyard.spec import Environment

NAME = "general"
_VOLUME_GIB = 60
# With prefix delegation, network interfaces no longer limit the pods per node: AWS' recommended maximum for
# nodes below 30 vCPU.
_PODS_WITH_PREFIXES = 110


def general_pool(environment: Environment) -> Iterator[Manifest]:
    """Graviton nodes of current generations, packed densely: every pod here restarts quickly."""
    nodes = environment.cluster.general_nodes
    yield node_class(
        name=NAME,
        environment=environment,
        settings=NodeClass(
            ami=nodes.ami,
            volume_gib=_VOLUME_GIB,
            pods=_PODS_WITH_PREFIXES if environment.network.prefix_delegation else None,
        ),
    )
    yield manifest(
        api_version="karpenter.sh/v1",
        kind="NodePool",
        name=NAME,
        labels=platform_labels("nodes"),
        spec={
            "template": {
                "spec": {
                    "nodeClassRef": node_class_reference(NAME, environment),
                    "requirements": [
                        one_of("kubernetes.io/arch", ["arm64"]),
                        one_of(instance_label(environment, "instance-category"), ["c", "m", "r"]),
                        {
                            "key": instance_label(environment, "instance-generation"),
                            "operator": "Gt",
                            "values": ["6"],
                        },
                        one_of("karpenter.sh/capacity-type", ["on-demand"]),
                        one_of("topology.kubernetes.io/zone", list(environment.availability_zones)),
                    ],
                    **lifetime(environment, serves=False),
                }
            },
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"},
            "limits": {"cpu": str(environment.cluster.general_vcpu)},
        },
    )
