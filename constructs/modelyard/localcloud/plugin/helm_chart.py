"""The Helm release of an EKS cluster: recorded, because there is no Kubernetes API behind the emulated
cluster."""

from __future__ import annotations

import json
from typing import Any

from modelyard.localcloud.journal import EmulationLevel
from modelyard.localcloud.plugin.resource_type import (
    Aws,
    Made,
    Properties,
    ResourceAddress,
    ResourceType,
    given,
)

_KEPT = ("Release", "Chart", "Version", "Repository", "ChartAssetURL", "Namespace", "CreateNamespace")


class HelmChart(ResourceType):
    """Accepted if its cluster exists, and recorded in the journal; nothing is executed."""

    name = "Custom::AWSCDK-EKS-HelmChart"
    level = EmulationLevel.RECORDED
    replaced_by = ("ClusterName",)

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        aws.client("eks").describe_cluster(name=properties["ClusterName"])
        return Made(place.name(128), {}, self._detail(properties))

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        aws.client("eks").describe_cluster(name=new["ClusterName"])
        return Made(physical_id, {}, self._detail(new))

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        """Only the record exists."""

    @staticmethod
    def _detail(properties: Properties) -> dict[str, Any]:
        values = properties.get("Values")
        return {
            **given(properties, "ClusterName", *_KEPT),
            **({"Values": json.loads(values)} if values else {}),
            "note": "not executed, there is no Kubernetes API",
        }


TYPES: tuple[ResourceType, ...] = (HelmChart(),)
