"""An EKS cluster that is managed elsewhere, and what it has already."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, field_validator

from modelyard.reading import suggestion
from modelyard.releases import addons, addons_everywhere, components
from modelyard.spec.document import Document

ComponentVersion = Annotated[
    str, Field(pattern=r"^v?[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?([-+][A-Za-z0-9.-]{1,40})?$")
]


# What people look for under `has`, and where it belongs.
_ELSEWHERE: Final = {
    "gpu-operator": "leave it out: it stays, and runs nothing on the nodes of pools",
    "kube-prometheus-stack": "write monitoring: {install: false}, with its namespace and labels",
    "prometheus-operator": "write monitoring: {install: false}, with its namespace and labels",
    "argo-cd": "write delivery: argocd",
    "argocd": "write delivery: argocd",
    "flux": "write delivery: none, and let it apply the rendered tree",
    "flux2": "write delivery: none, and let it apply the rendered tree",
}


class ExistingCluster(Document):
    """A cluster that is managed elsewhere: Modelyard adds what it lacks, and leaves alone what it has."""

    security_group: Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")]
    """The cluster security group, which EKS has made and attached to the API server."""
    node_security_group: Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")] | None = None
    """The security group of its nodes, where they have one of their own, as terraform-aws-eks makes it;
    default: the cluster's."""
    has: dict[str, ComponentVersion] = Field(default_factory=dict)
    """Components and EKS add-ons that it has already, with their versions, such as `karpenter: 1.14.1`;
    everything else that models need is installed. `modelyard doctor` prints them."""
    node_role: Annotated[str, Field(pattern=r"^[A-Za-z0-9+=,.@_-]{1,64}$")] | None = None
    """Name of the IAM role of launched nodes, which the cluster admits and its Karpenter may pass on; with
    `has: {karpenter: …}` or `compute: auto-mode`."""
    secrets_role: Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$")] | None = None
    """IAM role of the External Secrets that is there; it may then assume a role that reads the
    environment's secrets."""

    @field_validator("has")
    @classmethod
    def _known(cls, value: dict[str, str]) -> dict[str, str]:
        everywhere = addons_everywhere()
        known = sorted({*components(), *addons()} - everywhere)
        for name in value:
            if name in everywhere:
                raise ValueError(
                    f"has {name}: every cluster has it, and Modelyard leaves it alone; take it out"
                )
            if name in _ELSEWHERE:
                raise ValueError(f"has {name}: {_ELSEWHERE[name]}")
            if name not in known:
                raise ValueError(f"has {name}: {suggestion(name, known)}known are {', '.join(known)}")
        return value

    @property
    def nodes_join(self) -> str:
        """Security group of the nodes that pools launch."""
        return self.node_security_group or self.security_group
