"""What every node that Karpenter launches has in common."""

from __future__ import annotations

from typing import Any

from modelyard.spec import Environment

_VOLUME = {"volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
# gp3's maximum: images of ten gigabytes unpack as fast as the volume writes, and the node is paid for meanwhile.
_FASTEST = {"iops": 16000, "throughput": 1000}


def node_class(
    environment: Environment, *, ami: str, volume_gib: int, fastest_volume: bool = False
) -> dict[str, Any]:
    """`spec` of an EC2NodeClass: the cluster's subnets, group and instance profile, IMDSv2, an encrypted disk."""
    cluster = environment.cluster_name
    # Bottlerocket keeps images and pods on its second volume.
    device = "/dev/xvda" if ami.startswith("al2023") else "/dev/xvdb"
    ebs = {**_VOLUME, **(_FASTEST if fastest_volume else {}), "volumeSize": f"{volume_gib}Gi"}
    return {
        "amiSelectorTerms": [{"alias": ami}],
        "instanceProfile": f"{cluster}-node",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": cluster}}],
        "securityGroupSelectorTerms": [{"tags": {"aws:eks:cluster-name": cluster}}],
        "blockDeviceMappings": [{"deviceName": device, "ebs": ebs}],
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "tags": {**environment.tags, "modelyard.dev/env": environment.name},
    }


def one_of(key: str, values: list[str]) -> dict[str, Any]:
    """A requirement of a NodePool."""
    return {"key": key, "operator": "In", "values": values}
