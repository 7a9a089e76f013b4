"""A Helm chart that the platform needs, as the delivery engine installs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.delivery.argocd import IN_CLUSTER, argo_application
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.releases import ecr_repositories

# For ever: after its last retry Flux leaves a release failed until somebody resets it, and a registry may
# well be away for longer than five tries. No remediation in between, which uninstalls after a failed install
# and rolls back after a failed upgrade: a controller would come and go with every try (helm-controller 1.5.3,
# HelmRelease v2, spec.install.strategy).
_TRIED_AGAIN = {"name": "RetryOnFailure", "retryInterval": "5m"}


def helm_addon(
    *,
    engine: Literal["flux", "argocd"],
    name: str,
    namespace: str,
    repository: str,  # https:// for a chart index, oci:// for a registry
    chart: str,
    version: str,
    values: Mapping[str, Any],
    after: Sequence[str] = (),  # releases that must be ready first
    definitions: bool = True,  # install the CRDs that the chart carries in crds/
    server: str = IN_CLUSTER,  # for Argo CD
) -> Iterator[Manifest]:
    """One release: a Flux HelmRelease with its source, or an Argo CD Application."""
    if engine == "argocd":
        yield argo_application(
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
    yield manifest(
        api_version="source.toolkit.fluxcd.io/v1",
        kind="HelmRepository",
        name=name,
        namespace=FLUX_NAMESPACE,
        labels=labels,
        spec={
            "url": repository,
            **({"type": "oci"} if repository.startswith("oci://") else {"interval": "24h"}),
            # With the source controller's own role.
            **({"provider": "aws"} if ecr_repositories(repository) else {}),
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
        "install": {"crds": "Create" if definitions else "Skip", "strategy": _TRIED_AGAIN},
        "upgrade": {"crds": "CreateReplace" if definitions else "Skip", "strategy": _TRIED_AGAIN},
        "values": dict(values),
    }
    if after:
        spec["dependsOn"] = [{"name": other} for other in after]
    yield manifest(
        api_version="helm.toolkit.fluxcd.io/v2",
        kind="HelmRelease",
        name=name,
        namespace=FLUX_NAMESPACE,
        labels=labels,
        spec=spec,
    )
