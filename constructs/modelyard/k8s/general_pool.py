"""CPU nodes on demand: downloads of weights, and whatever the fixed system nodes do not hold."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.node_class import node_class, one_of
from modelyard.spec import Environment

NAME = "general"
_VOLUME_GIB = 60


class GeneralPool(Construct):
    """Graviton nodes of the current generations, packed densely: nothing here takes long to start again."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        nodes = environment.cluster.general_nodes
        labels = platform_labels("nodes")
        manifest(
            self,
            "NodeClass",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
            name=NAME,
            labels=labels,
            spec=node_class(environment, ami=nodes.ami, volume_gib=_VOLUME_GIB),
        )
        manifest(
            self,
            "NodePool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            name=NAME,
            labels=labels,
            spec={
                "template": {
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NAME},
                        "requirements": [
                            one_of("kubernetes.io/arch", ["arm64"]),
                            one_of("karpenter.k8s.aws/instance-category", ["c", "m", "r"]),
                            {
                                "key": "karpenter.k8s.aws/instance-generation",
                                "operator": "Gt",
                                "values": ["6"],
                            },
                            one_of("karpenter.sh/capacity-type", ["on-demand"]),
                            one_of("topology.kubernetes.io/zone", list(environment.availability_zones)),
                        ],
                        "expireAfter": "720h",
                    }
                },
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"},
                "limits": {"cpu": str(nodes.vcpu_limit)},
            },
        )
