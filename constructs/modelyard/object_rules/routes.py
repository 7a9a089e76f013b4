"""Routes match Services and Gateways, and inference pools match replicas and their picker."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.object_rules.broken import broken
from modelyard.object_rules.index import Labelled, by_target, synchronized_secrets
from modelyard.object_rules.pods import WORKLOADS, Manifest, at, named, ports

_NETWORKS = "service.beta.kubernetes.io/load-balancer-source-ranges"
_API = "/v1"  # the OpenAI API; metrics, adapter loading and the like stay internal


def route_findings(items: list[Manifest]) -> Iterator[Finding]:
    """Broken rules of HTTPRoutes, Gateways and InferencePools."""
    known = by_target(i for i in items if i["kind"] in ("Service", "Gateway"))
    running = Labelled(i for i in items if i["kind"] in WORKLOADS)
    secrets = synchronized_secrets(items)
    settings = {named(i) for i in items if i["kind"] == "ConfigMap"}
    auto_mode = any(i["kind"] == "NodeClass" for i in items)
    for item in items:
        if item["kind"] == "HTTPRoute":
            yield from _route_findings(item, known)
        elif item["kind"] == "Gateway":
            yield from _gateway_findings(item, secrets)
            yield from _balancer_findings(item, settings, auto_mode=auto_mode)
        elif item["kind"] == "InferencePool":
            yield from _pool_findings(item, known, running)


def _route_findings(route: Manifest, known: dict[tuple[str | None, str, str], Manifest]) -> Iterator[Finding]:
    place = named(route)[0]
    for parent in at(route, "spec.parentRefs") or []:
        gateway = known.get((parent.get("namespace", place), "Gateway", parent["name"]))
        if gateway is None:
            yield broken(
                route, f"hangs on gateway {parent['name']}, which nobody renders", "keep the Gateway"
            )
        elif parent.get("sectionName") not in [None, *(e["name"] for e in gateway["spec"]["listeners"])]:
            yield broken(
                route, f"hangs on listener {parent['sectionName']}, which is not there", "use its name"
            )
    for rule in at(route, "spec.rules") or []:
        paths = [at(match, "path.value") for match in rule.get("matches") or []]
        if not paths or any(path is None or not f"{path}/".startswith(f"{_API}/") for path in paths):
            yield broken(
                route, "lets in more than the API", f"keep a path of {_API} in every match of every rule"
            )
        for backend in rule.get("backendRefs") or []:
            service = known.get(
                (backend.get("namespace", place), backend.get("kind", "Service"), backend["name"])
            )
            if service is None:
                yield broken(
                    route, f"leads to {backend['name']}, which nobody renders", "name the model's Service"
                )
            elif backend.get("port") not in [port["port"] for port in service["spec"]["ports"]]:
                yield broken(
                    route, f"leads to port {backend.get('port')}, which the Service lacks", "use its port"
                )


def _gateway_findings(gateway: Manifest, secrets: set[tuple[str | None, str]]) -> Iterator[Finding]:
    for listener in at(gateway, "spec.listeners") or []:
        certificates = at(listener, "tls.certificateRefs") or []
        if listener.get("protocol") != "HTTPS" or not certificates:
            yield broken(gateway, f"listener {listener.get('name')} has no TLS", "keep protocol HTTPS")
        for certificate in certificates:
            if (certificate.get("namespace", named(gateway)[0]), certificate["name"]) not in secrets:
                yield broken(
                    gateway,
                    f"shows certificate {certificate['name']}, which nobody renders",
                    "keep its ExternalSecret",
                )
        if at(listener, "allowedRoutes.namespaces.from") == "All":
            yield broken(gateway, "takes routes of any namespace", "keep allowedRoutes")


def _balancer_findings(
    gateway: Manifest, settings: set[tuple[str | None, str]], *, auto_mode: bool
) -> Iterator[Finding]:
    """Source ranges of the load balancer: an annotation, or in EKS Auto Mode a field of the Service."""
    infrastructure = at(gateway, "spec.infrastructure") or {}
    service = at(infrastructure, "parametersRef.name")
    if service and (named(gateway)[0], service) not in settings:
        yield broken(gateway, f"takes settings of {service}, which nobody renders", "keep its ConfigMap")
    if auto_mode and _NETWORKS in (infrastructure.get("annotations") or {}) and not service:
        yield broken(gateway, "lets every network in: Auto Mode ignores the annotation", "keep parametersRef")


def _pool_findings(
    pool: Manifest, known: dict[tuple[str | None, str, str], Manifest], running: Labelled
) -> Iterator[Finding]:
    members = running.chosen_beside(pool, at(pool, "spec.selector.matchLabels") or {})
    if not members:
        yield broken(pool, "selects no pods", "keep its selector equal to the replicas' labels")
    for port in at(pool, "spec.targetPorts") or []:
        if any(port["number"] not in ports(member) for member in members):
            yield broken(pool, f"targets port {port['number']}, which no pod has", "use the pod's port")
    picker = (named(pool)[0], "Service", str(at(pool, "spec.endpointPickerRef.name")))
    if picker not in known:
        yield broken(pool, f"asks picker {picker[2]}, which nobody renders", "keep the router's Service")
