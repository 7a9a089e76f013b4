"""CPU nodes on demand: downloads of weights, and whatever the fixed system nodes do not hold."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest
from modelyard.k8s.node_class import NodeClass, add_node_class, instance_label, lifetime, one_of
from modelyard.spec import Environment

NAME = "general"
_VOLUME_GIB = 60
# With addresses in blocks, interfaces no longer bound the pods of a node: what AWS advises for nodes below 30 vCPU.
_PODS_WITH_PREFIXES = 110


class GeneralPool(Construct):
    """Graviton nodes of the current generations, packed densely: nothing here takes long to start again."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        nodes = environment.cluster.general_nodes
        reference = add_node_class(
            self,
            "NodeClass",
            name=NAME,
            environment=environment,
            settings=NodeClass(
                ami=nodes.ami,
                volume_gib=_VOLUME_GIB,
                pods=_PODS_WITH_PREFIXES if environment.network.prefix_delegation else None,
            ),
        )
        manifest(
            self,
            "NodePool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            name=NAME,
            labels=platform_labels("nodes"),
            spec={
                "template": {
                    "spec": {
                        "nodeClassRef": reference,
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
                "limits": {"cpu": str(nodes.vcpu_limit)},
            },
        )
