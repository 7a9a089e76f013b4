"""The file `data/releases.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from packaging.version import Version

from modelyard.reading.table import read_table


@dataclass(frozen=True)
class Minor:
    """A Kubernetes minor version in EKS. `support_ends` is None if AWS has not announced it."""

    version: str
    support_ends: date | None
    least_karpenter: str


@dataclass(frozen=True)
class Chart:
    """A Helm chart at one version.

    `restricted`: paths of values that must be RuntimeDefault for its pods to pass Pod Security `restricted`;
    None if nobody has read that. `nodes`: the value by which it chooses nodes, if not `affinity`.
    `disabled`: paths of values that must be false on EKS. `images`: path of each value that names a registry,
    and its default; None if nobody has read them. `oci`: repository of the same chart as an OCI artefact.
    """

    name: str
    repository: str
    version: str
    restricted: tuple[str, ...] | None = None
    nodes: str | None = None
    disabled: tuple[str, ...] = ()
    images: Mapping[str, str] | None = None
    oci: str | None = None


@dataclass(frozen=True)
class Definitions:
    """A folder of custom resource definitions in a Git repository, at a tag."""

    url: str
    tag: str
    path: str


@dataclass(frozen=True)
class Component:
    """What an existing cluster may have already, besides EKS add-ons.

    `releases`: charts and definitions of ours that are then left out. `groups`: API groups that it defines.
    `workloads`: names of its Deployments and DaemonSets, or values of their label `app.kubernetes.io/name`.
    `least`: the oldest version that takes what is rendered for it; None if nothing is.
    """

    name: str
    releases: tuple[str, ...]
    groups: tuple[str, ...]
    workloads: tuple[str, ...]
    least: str | None

    def defines(self, group: str) -> bool:
        """Whether the API group is one of its own, or below one."""
        return any(group == each or group.endswith(f".{each}") for each in self.groups)


@cache
def components() -> Mapping[str, Component]:
    """Every component by name."""
    return MappingProxyType(
        {
            name: Component(
                name, tuple(row["releases"]), tuple(row["groups"]), tuple(row["workloads"]), row["least"]
            )
            for name, row in _table()["components"].items()
        }
    )


def addons_everywhere() -> frozenset[str]:
    """EKS add-ons without which no cluster has a running pod."""
    return frozenset(_table()["everywhere"])


@cache
def minors() -> Mapping[str, Minor]:
    """The Kubernetes minor versions that environments can use, oldest first."""
    rows = _table()["kubernetes"]
    return MappingProxyType(
        {
            name: Minor(name, row["standardSupportEnds"], row["leastKarpenter"])
            for name, row in sorted(rows.items(), key=lambda item: Version(item[0]))
        }
    )


def addon_version(name: str, kubernetes: str) -> str:
    """Version of the EKS add-on `name` for a Kubernetes minor.

    Raises:
        KeyError: the file has none.
    """
    row = _table()["addons"][name]
    return str(row if isinstance(row, str) else row[kubernetes])


def addons() -> tuple[str, ...]:
    """Names of the EKS add-ons with a version in the file."""
    return tuple(_table()["addons"])


def node_release(kubernetes: str) -> str:
    """AMI release of the system nodes for a Kubernetes minor, such as 1.36.2-20260714.

    Raises:
        KeyError: the file has none.
    """
    return str(_table()["nodeReleases"][kubernetes])


def kubectl() -> str:
    """Kubernetes minor of the kubectl that installs Flux."""
    return str(_table()["kubectl"])


def chart(name: str) -> Chart:
    """The Helm chart `name`.

    Raises:
        KeyError: the file has none.
    """
    return charts()[name]


@cache
def charts() -> Mapping[str, Chart]:
    """Every chart by name."""
    return MappingProxyType(
        {
            name: Chart(
                name,
                row["repository"],
                str(row["version"]),
                None if row.get("restricted") is None else tuple(row["restricted"]),
                row.get("nodes"),
                tuple(row.get("disabled", ())),
                None if row.get("images") is None else MappingProxyType(row["images"]),
                row.get("oci"),
            )
            for name, row in _table()["charts"].items()
        }
    )


def definitions(project: str) -> Definitions:
    """The custom resource definitions of `project`.

    Raises:
        KeyError: the file has none.
    """
    return Definitions(**_table()["definitions"][project])


@cache
def _table() -> dict[str, Any]:
    return read_table(files("modelyard.releases").joinpath("data", "releases.yaml"))
