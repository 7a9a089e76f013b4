"""Where images and charts are pulled from: their own registries, or what stands for these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from modelyard.reading.table import read_table
from modelyard.releases.releases import Chart

DOCKER_HUB: Final = "docker.io"
_OCI: Final = "oci://"
_DOCKER_HUBS: Final = ("index.docker.io", "registry-1.docker.io")
_ECR: Final = re.compile(r"^(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?$")


@dataclass(frozen=True)
class Upstream:
    """A registry from which Amazon ECR can cache.

    `name` and `url`: as ECR calls it. `folder`: where its repositories are below the environment's name.
    `credentials`: whether ECR needs an account there.
    """

    registry: str
    name: str
    url: str
    folder: str
    credentials: bool


@dataclass(frozen=True)
class EcrRepositories:
    """Repositories of Amazon ECR whose names begin with `prefix`."""

    account: str
    region: str
    prefix: str


@cache
def upstreams() -> Mapping[str, Upstream]:
    """The registries from which ECR can cache, by host."""
    return MappingProxyType({host: Upstream(host, **row) for host, row in _table()["pullThrough"].items()})


@cache
def amazon_registries() -> frozenset[str]:
    """Private registries with AWS' own images of EKS."""
    return frozenset(_table()["amazon"])


def registry_of(image: str) -> tuple[str, str]:
    """Registry and rest of an image's name, which Docker Hub's may leave out.

    >>> registry_of("vllm/vllm-openai:v0.33.0")
    ('docker.io', 'vllm/vllm-openai:v0.33.0')
    >>> registry_of("python:3.13")
    ('docker.io', 'library/python:3.13')
    """
    first, slash, rest = image.partition("/")
    if slash and (any(sign in first for sign in ".:") or first == "localhost"):
        return (DOCKER_HUB if first in _DOCKER_HUBS else first), rest
    return DOCKER_HUB, image if slash else f"library/{image}"


def ecr_repositories(place: str) -> EcrRepositories | None:
    """What `place`, a host with or without a prefix, is in Amazon ECR; None if it is not there."""
    host, _, prefix = place.removeprefix(_OCI).partition("/")
    found = _ECR.match(host)
    return EcrRepositories(found["account"], found["region"], prefix) if found else None


@dataclass(frozen=True)
class ImageRoutes:
    """What stands for registries in one environment.

    `registries`: host to the host and prefix that replaces it. `everything`: host and prefix for all others.
    `charts`: OCI repository with every chart. `direct`: hosts that may be asked themselves.
    `environment`: its name, for messages.
    """

    registries: Mapping[str, str] = field(default_factory=dict)
    everything: str | None = None
    charts: str | None = None
    direct: frozenset[str] = frozenset()
    environment: str = ""

    @property
    def used(self) -> bool:
        """Whether the environment has a registry of its own."""
        return bool(self.registries or self.everything or self.charts)

    def image(self, name: str) -> str:
        """`name`, as this environment pulls it; unchanged where nothing stands for its registry."""
        if not self.used or self._is_ours(name):
            return name
        host, rest = registry_of(name)
        place = self._place(host)
        return f"{place}/{rest}" if place else name

    def passed_by(self, name: str) -> str | None:
        """The registry that image `name` would be pulled from, if it is neither ours nor admitted."""
        if not self.used or self._is_ours(name):
            return None
        host, _ = registry_of(name)
        return None if host in self.direct or host in amazon_registries() else host

    def chart(self, chart: Chart) -> str:
        """The repository of `chart`."""
        if self.charts:
            return self.charts
        if self.everything:
            return f"{_OCI}{self.everything}/charts"
        for repository in (chart.repository, chart.oci):
            if repository and repository.startswith(_OCI):
                host, _, path = repository.removeprefix(_OCI).partition("/")
                if place := self._place(host):
                    return f"{_OCI}{place}/{path}"
        return chart.repository

    def chart_passed_by(self, repository: str) -> str | None:
        """The host of a chart's `repository`, if it is neither ours nor admitted."""
        if not self.used or repository == self.charts or self._is_ours(repository.removeprefix(_OCI)):
            return None
        host = repository.partition("://")[2].partition("/")[0] or repository.partition("/")[0]
        return None if host in self.direct else host

    def values(self, chart: Chart, others: Mapping[str, Any]) -> dict[str, Any]:
        """`others`, with the values by which the images of `chart` are pulled from here."""
        found: dict[str, Any] = {}
        for path, default in (chart.images or {}).items() if self.used else ():
            *parents, last = path.split(".")
            place = found
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = self.value(default)
        return _merged(others, found)

    def value(self, default: str) -> str:
        """A chart's value that begins with a registry, as it is here."""
        host, slash, rest = default.partition("/")
        return f"{place}{slash}{rest}" if (place := self._place(host)) else default

    def redirected(self, item: dict[str, Any]) -> dict[str, Any]:
        """`item`, an object or a part of one, whose containers pull from here."""
        return _redirected(self, item) if self.used else item

    def _place(self, host: str) -> str | None:
        if host in self.registries:
            return self.registries[host]
        if host in self.direct or self.everything is None:
            return None
        return f"{self.everything}/{host}"

    def _is_ours(self, name: str) -> bool:
        return any(name == place or name.startswith(f"{place}/") for place in self._places())

    def _places(self) -> Iterator[str]:
        yield from self.registries.values()
        if self.everything:
            yield self.everything
        if self.charts:
            yield self.charts.removeprefix(_OCI)


def _merged(values: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(values)
    for key, value in more.items():
        inside = result.get(key)
        result[key] = _merged(inside, value) if isinstance(inside, Mapping) else value
    return result


def _redirected(routes: ImageRoutes, value: Any) -> Any:
    if isinstance(value, list):
        return [_redirected(routes, each) for each in value]
    if not isinstance(value, dict):
        return value
    result = {key: _redirected(routes, each) for key, each in value.items()}
    for key in ("initContainers", "containers"):
        if isinstance(result.get(key), list):
            result[key] = [
                {**each, "image": routes.image(each["image"])}
                if isinstance(each, dict) and isinstance(each.get("image"), str)
                else each
                for each in result[key]
            ]
    return result


@cache
def _table() -> dict[str, Any]:
    return read_table(files("modelyard.releases").joinpath("data", "registries.yaml"))
