"""What an existing cluster has, against what a deploy would add to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubernetes import Item, LiveCluster
from modelyard.live.clusters import kinds
from modelyard.live.clusters.kinds import (
    APPLICATION,
    DAEMON_SET,
    DEFINITION,
    DEPLOYMENT,
    GIT_REPOSITORY,
    HELM_RELEASE,
)
from modelyard.live.diagnosis import Case, Diagnosis, ok, problem, unknown
from modelyard.names import FLUX_NAMESPACE
from modelyard.objects.composition import default_objects
from modelyard.objects.labels import made_by_us
from modelyard.planning.components import needed_components
from modelyard.releases import Component, components

CHECK: Final = "its contents"
_RELEASES: Final = (HELM_RELEASE, APPLICATION, GIT_REPOSITORY)
_PROMETHEUS: Final = "monitoring.coreos.com"
_FLUX_CONTROLLER: Final = "kustomize-controller"
_FLUX_RELEASE: Final = "flux"
# It brings these two with it, and runs them wherever a node does not say otherwise.
_GPU_OPERATOR: Final = "nvidia.com"
_OPERANDS: Final = ("nvidia-device-plugin", "dcgm-exporter")
# Both projects write it on their definitions.
_BUNDLE: Final = re.compile(r"(^|\.)bundle-version$|/bundle-version$")
_VERSION: Final = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True)
class ClusterContents:
    """Definitions and workloads of a cluster, and names of the releases that Modelyard has installed."""

    definitions: tuple[Item, ...]
    workloads: tuple[Item, ...]
    ours: frozenset[str]

    @classmethod
    def of(cls, cluster: LiveCluster) -> ClusterContents:
        """Look into `cluster`.

        Raises:
            Unreachable: no answer, or a refusal.
        """
        return cls(
            tuple(cluster.items(DEFINITION)),
            tuple(item for kind in (DEPLOYMENT, DAEMON_SET) for item in cluster.items(kind)),
            frozenset(
                item.name for kind in _RELEASES for item in cluster.items(kind) if made_by_us(item.labels)
            ),
        )

    def defining(self, group: str) -> list[Item]:
        """Definitions of an API group."""
        return [item for item in self.definitions if item.spec.get("group") == group]

    def running(self, name: str) -> Item | None:
        """The workload of this name, or with this name as its label."""
        for item in self.workloads:
            if name in (item.name, item.labels.get("app.kubernetes.io/name")):
                return item
        return None

    def version_of(self, component: Component) -> str | None:
        """The version of a component that is there; empty if it does not say, None if it is not there."""
        defined = [item for group in component.groups for item in self.defining(group)]
        found = next((item for name in component.workloads if (item := self.running(name))), None)
        if not (defined or found):
            return None
        stated = [text for item in defined for key, text in item.annotations.items() if _BUNDLE.search(key)]
        if found is not None:
            stated = [_image_tag(found), found.labels.get("app.kubernetes.io/version", ""), *stated]
        return next((match[0] for text in stated if (match := _VERSION.match(text))), "")


def examine_cluster(cluster: LiveCluster, case: Case) -> tuple[Diagnosis, ...]:
    """Whether the cluster has what the environment's file says, nothing else that a deploy would install a
    second time, and no object of somebody else that a deploy would overwrite."""
    found: list[Diagnosis] = []
    try:
        contents = ClusterContents.of(cluster)
        found += _components(contents, case)
        found += _installations(contents, case)
        found += _taken(cluster, case)
    except Unreachable as why:
        found.append(unknown("", str(why)))
    return tuple(replace(each, check=CHECK) for each in found)


def _components(contents: ClusterContents, case: Case) -> Iterator[Diagnosis]:
    cluster, needed = case.environment.cluster, needed_components(case.environment, case.plan.models)
    stated = cluster.existing.has if cluster.existing else {}
    for name, component in components().items():
        version = contents.version_of(component)
        line = f"in {case.file}: cluster: {{existing: {{has: {{{name}: {version or 'VERSION'}}}}}}}"
        installed = contents.ours & set(component.releases)
        if name in stated:
            if name in _OPERANDS and contents.defining(_GPU_OPERATOR):
                yield problem(
                    name,
                    "it is the GPU operator's, which would also install its driver and runtime on nodes that have both; "
                    "its metrics have other labels",
                    f"take {name} out of cluster.existing.has in {case.file}: pools are labelled so that it stays off them",
                )
            elif installed:
                yield problem(
                    name,
                    f"Modelyard has installed it; with has.{name} a deploy uninstalls it, and its definitions with all objects",
                    f"take {name} out of cluster.existing.has in {case.file}",
                )
            elif version is None:
                yield problem(
                    name,
                    f"{case.file} says that the cluster has it, which has neither its definitions nor its workloads",
                    f"take {name} out of cluster.existing.has in {case.file}, and Modelyard installs it",
                )
            elif version and _plain(version) != _plain(stated[name]):
                yield problem(name, f"the cluster has {version}, {case.file} says {stated[name]}", line)
            else:
                yield ok(name, f"{version or stated[name]}, as {case.file} says")
        elif name in needed and name in _OPERANDS and contents.defining(_GPU_OPERATOR):
            yield ok(name, "the GPU operator stays off the nodes of pools, where a deploy installs ours")
        elif name in needed and version is not None and not installed:
            yield problem(name, "the cluster has it, and a deploy would install a second one", line)
        elif name in needed:
            yield ok(
                name, "installed by Modelyard" if version is not None else "not there; a deploy installs it"
            )


def _installations(contents: ClusterContents, case: Case) -> Iterator[Diagnosis]:
    """Prometheus and Flux, which are no components: other settings decide about them."""
    environment, ours = case.environment, contents.ours
    monitoring = environment.monitoring
    if (
        monitoring.enabled
        and monitoring.install
        and contents.defining(_PROMETHEUS)
        and "kube-prometheus-stack" not in ours
    ):
        yield problem(
            "kube-prometheus-stack",
            "the cluster has the Prometheus Operator, and a deploy would install a second one",
            f"in {case.file}: monitoring: {{install: false, namespace: …, labels: …}}",
        )
    flux = contents.running(_FLUX_CONTROLLER)
    if environment.delivery == "flux" and flux is not None and not _is_our_flux(flux):
        yield problem(
            "flux",
            f"the cluster has Flux in {flux.namespace}, and a deploy would install a second one over its definitions",
            f"in {case.file}: delivery: none, and let that Flux apply the rendered tree from Git; or delivery: argocd",
        )


def _taken(cluster: LiveCluster, case: Case) -> Iterator[Diagnosis]:
    """Objects of the whole cluster that have names of ours, and are not ours."""
    rendered = {
        (item["kind"], item["metadata"]["name"])
        for items in default_objects(case.plan).values()
        for item in items
    }
    found = [
        item
        for kind in kinds.CLUSTER_WIDE
        if any(name == kind.name for name, _ in rendered)
        for item in cluster.items(kind)
        if (kind.name, item.name) in rendered and not made_by_us(item.labels)
    ]
    for item in found:
        yield problem(
            str(item),
            "somebody else has made it: a deploy would overwrite it, and `modelyard drain` would delete it",
            f"take another name in {case.file}, or remove the object if nobody needs it",
        )
    if not found:
        yield ok(case.environment.cluster_name, "no name that a deploy needs is taken")


def _is_our_flux(item: Item) -> bool:
    return (
        item.namespace == FLUX_NAMESPACE
        and item.annotations.get("meta.helm.sh/release-name") == _FLUX_RELEASE
    )


def _image_tag(item: Item) -> str:
    containers = item.spec.get("template", {}).get("spec", {}).get("containers") or [{}]
    image = str(containers[0].get("image", "")).partition("@")[0]
    return image.rpartition("/")[2].partition(":")[2]


def _plain(version: str) -> str:
    return version.removeprefix("v").partition("-")[0]
