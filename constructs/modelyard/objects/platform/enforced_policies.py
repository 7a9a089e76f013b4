"""The setting without which EKS Auto Mode accepts NetworkPolicies and ignores them."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest


def enforced_network_policies() -> Iterator[Manifest]:
    """The ConfigMap that starts EKS' network policy controller; the other setting is the node classes'
    `networkPolicy`.

    Auto Mode has no add-on `vpc-cni` to configure (EKS user guide, auto-net-pol).
    """
    yield manifest(
        api_version="v1",
        kind="ConfigMap",
        name="amazon-vpc-cni",
        namespace="kube-system",
        labels=platform_labels("network"),
        data={"enable-network-policy-controller": "true"},
    )
