"""A Helm chart that the platform needs, as the delivery engine installs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from constructs import Construct

from modelyard.k8s.argocd import IN_CLUSTER, ArgoApplication
from modelyard.k8s.labels import platform_labels
from modelyard.k8s.manifest import manifest

FLUX_NAMESPACE = "flux-system"


class HelmAddon(Construct):
    """One release: a Flux HelmRelease with its source, or an Argo CD Application."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        engine: Literal["flux", "argocd"],
        name: str,
        namespace: str,
        repository: str,  # https:// for a chart index, oci:// for a registry
        chart: str,
        version: str,
        values: Mapping[str, Any],
        after: Sequence[str] = (),  # releases that must be ready before
        definitions: bool = True,  # install the CRDs that the chart carries in crds/
        server: str = IN_CLUSTER,  # for Argo CD
    ) -> None:
        super().__init__(scope, construct_id)
        if engine == "argocd":
            ArgoApplication(
                self,
                "Application",
                name=name,
                destination=namespace,
                source={
                    "repoURL": repository.removeprefix("oci://"),
                    "chart": chart,
                    "targetRevision": version,
                    "helm": {
                        "releaseName": name,
                        "valuesObject": dict(values),
                        "skipCrds": not definitions,
                    },
                },
                wave=-4 if after else -5,
                server=server,
            )
            return
        labels = platform_labels("add-on")
        manifest(
            self,
            "Repository",
            api_version="source.toolkit.fluxcd.io/v1",
            kind="HelmRepository",
            name=name,
            namespace=FLUX_NAMESPACE,
            labels=labels,
            spec={
                "url": repository,
                **({"type": "oci"} if repository.startswith("oci://") else {"interval": "24h"}),
            },
        )
        spec: dict[str, Any] = {
            "interval": "30m",
            "releaseName": name,
            "targetNamespace": namespace,
            "storageNamespace": namespace,
            "chart": {
                "spec": {
                    "chart": chart,
                    "version": version,
                    "sourceRef": {"kind": "HelmRepository", "name": name},
                }
            },
            "install": {"crds": "Create" if definitions else "Skip", "remediation": {"retries": 5}},
            "upgrade": {"crds": "CreateReplace" if definitions else "Skip", "remediation": {"retries": 3}},
            "values": dict(values),
        }
        if after:
            spec["dependsOn"] = [{"name": other} for other in after]
        manifest(
            self,
            "Release",
            api_version="helm.toolkit.fluxcd.io/v2",
            kind="HelmRelease",
            name=name,
            namespace=FLUX_NAMESPACE,
            labels=labels,
            spec=spec,
        )
