"""The switch without which EKS Auto Mode accepts NetworkPolicies and ignores them."""

from __future__ import annotations

from constructs import Construct

from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest


class EnforcedNetworkPolicies(Construct):
    """The ConfigMap that starts EKS' network policy controller; node classes do the rest with `networkPolicy`.

    Auto Mode has no add-on `vpc-cni` that could be told (EKS user guide, auto-net-pol).
    """

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        manifest(
            self,
            "Settings",
            api_version="v1",
            kind="ConfigMap",
            name="amazon-vpc-cni",
            namespace="kube-system",
            labels=platform_labels("network"),
            data={"enable-network-policy-controller": "true"},
        )
