"""Where an environment has a registry, everything is pulled from it: containers, charts, and what charts
start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.object_rules.pods import WORKLOADS, Manifest, at, containers, named, pod_templates
from modelyard.releases import ImageRoutes, charts, upstreams

_NAMES_AN_IMAGE = ("hub", "image", "registry", "repository")


def registry_findings(items: list[Manifest], routes: ImageRoutes) -> Iterator[Finding]:
    """Registries that are asked past the environment's own, each with the objects that ask it."""
    if not routes.used:
        return
    asked: dict[str, list[Manifest]] = defaultdict(list)
    fetched: dict[str, list[Manifest]] = defaultdict(list)
    repositories = {
        named(item)[1]: str(at(item, "spec.url")) for item in items if item["kind"] == "HelmRepository"
    }
    for item in items:
        for host in sorted({host for name in _images(item) if (host := routes.passed_by(name))}):
            asked[host].append(item)
        for host in sorted(_past_in_values(item, routes)):
            asked[host].append(item)
        if (source := _source(item, repositories)) and (host := routes.chart_passed_by(source)):
            fetched[host].append(item)
    for host, objects in sorted(asked.items()):
        yield _finding(routes, objects, f"images are pulled from {host}", _way_out(host))
    for host, objects in sorted(fetched.items()):
        yield _finding(
            routes,
            objects,
            f"charts are fetched from {host}",
            f"push them to an OCI repository and name it as registry.charts, or add {host} to registry.direct",
        )


def _images(item: Manifest) -> Iterator[str]:
    for template in pod_templates(item) if item["kind"] in WORKLOADS else ():
        for container in containers(template["spec"]):
            yield str(container.get("image", ""))


def _past_in_values(item: Manifest, routes: ImageRoutes) -> set[str]:
    """Registries in the values of a chart, and the defaults of values that are not set."""
    name, values = _values(item)
    if name is None:
        return set()
    chart = charts().get(name)
    told = {path: at(values, path) for path in (chart.images if chart else None) or {}}
    defaults = dict(chart.images or {}) if chart else {}
    texts = [str(stated) if stated is not None else defaults[path] for path, stated in told.items()]
    return {
        host
        for text in (*texts, *_stated(values))
        # A registry alone is a host; behind a slash it is one.
        if (host := routes.passed_by(text if "/" in text else f"{text}/"))
    }


def _stated(value: object) -> Iterator[str]:
    """Texts under keys that name an image, as far as they begin with a host."""
    if isinstance(value, list):
        for each in value:
            yield from _stated(each)
    if isinstance(value, dict):
        for key, each in value.items():
            if key in _NAMES_AN_IMAGE and isinstance(each, str):
                if "." in each.partition("/")[0]:
                    yield each
            else:
                yield from _stated(each)


def _values(item: Manifest) -> tuple[str | None, Manifest]:
    if item["kind"] == "HelmRelease":
        return str(at(item, "spec.chart.spec.chart")), at(item, "spec.values") or {}
    if item["kind"] == "Application" and at(item, "spec.source.chart"):
        return str(at(item, "spec.source.chart")), at(item, "spec.source.helm.valuesObject") or {}
    return None, {}


def _source(item: Manifest, repositories: dict[str, str]) -> str | None:
    """URL of the repository of a chart."""
    if item["kind"] == "HelmRelease":
        return repositories.get(str(at(item, "spec.chart.spec.sourceRef.name")))
    if item["kind"] == "Application" and at(item, "spec.source.chart"):
        return str(at(item, "spec.source.repoURL"))
    return None


def _finding(routes: ImageRoutes, objects: list[Manifest], what: str, fix: str) -> Finding:
    who = ", ".join(dict.fromkeys(f"{item['kind']} {named(item)[1]}" for item in objects))
    return Finding(
        "REG001",
        f"{what}, past the environment's registry: {who}",
        fix,
        subject=f"environment {routes.environment}",
        field=("registry",),
    )


def _way_out(host: str) -> str:
    cached = upstreams().get(host)
    if cached is None:
        return (
            f"name a mirror under registry.mirrors: {{{host}: HOST/PREFIX}}, or add {host} to registry.direct"
        )
    if cached.credentials:
        return (
            f"name a secret under registry.pullThrough.credentials, a mirror under registry.mirrors: "
            f"{{{host}: HOST/PREFIX}}, or add {host} to registry.direct"
        )
    return f"set registry.pullThrough, name a mirror under registry.mirrors, or add {host} to registry.direct"
