"""Traffic to models from outside the cluster: load balancers with TLS, and routes to the API only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.network import GATEWAYS
from modelyard.objects.platform.secrets import external_secret
from modelyard.objects.pods.security import security_levels
from modelyard.objects.yaml_text import to_yaml
from modelyard.spec import Environment
from modelyard.spec.environment import Gateway

_API = "gateway.networking.k8s.io/v1"
_LISTENER = "https"
# Annotations of the load balancer for the gateway's Service.
_BALANCER = "service.beta.kubernetes.io/aws-load-balancer-"


def model_gateways(environment: Environment) -> Iterator[Manifest]:
    """One Gateway per exposure of the environment, with its certificate, in a separate namespace."""
    yield manifest(
        api_version="v1",
        kind="Namespace",
        name=GATEWAYS,
        labels={**platform_labels("gateway"), **security_levels()},
    )
    for name in ("internal", "public"):
        if gateway := environment.gateways.of(name):
            yield from _gateway(name, gateway, environment)


def _gateway(name: str, gateway: Gateway, environment: Environment) -> Iterator[Manifest]:
    yield external_secret(
        name=f"{name}-certificate",
        namespace=GATEWAYS,
        key=environment.secrets[gateway.certificate],
        certificate=True,
    )
    infrastructure: dict[str, Any] = {"annotations": _balancer(name, gateway)}
    if gateway.cidrs and environment.cluster.auto_mode:
        settings = _limited_service(name, gateway)
        yield settings
        reference = {"group": "", "kind": "ConfigMap", "name": settings["metadata"]["name"]}
        infrastructure["parametersRef"] = reference
    yield manifest(
        api_version=_API,
        kind="Gateway",
        name=name,
        namespace=GATEWAYS,
        labels=platform_labels("gateway"),
        spec={
            "gatewayClassName": gateway.class_name,
            "infrastructure": infrastructure,
            "listeners": [
                {
                    "name": _LISTENER,
                    "protocol": "HTTPS",
                    "port": 443,
                    "hostname": f"*.{gateway.domain}",
                    "tls": {
                        "mode": "Terminate",
                        "certificateRefs": [{"kind": "Secret", "name": f"{name}-certificate"}],
                    },
                    # Routes only from the models' namespace: no other namespace may claim a name of the
                    # domain.
                    "allowedRoutes": {
                        "namespaces": {
                            "from": "Selector",
                            "selector": {
                                "matchLabels": {"kubernetes.io/metadata.name": environment.namespace}
                            },
                        }
                    },
                }
            ],
        },
    )


def _limited_service(name: str, gateway: Gateway) -> Manifest:
    """Settings that Istio merges into the gateway's Service.

    EKS Auto Mode ignores the annotation for source ranges and reads the field (EKS user guide,
    auto-configure-nlb; Istio, Gateway API, automated deployment).
    """
    return manifest(
        api_version="v1",
        kind="ConfigMap",
        name=f"{name}-service",
        namespace=GATEWAYS,
        labels=platform_labels("gateway"),
        data={"service": to_yaml({"spec": {"loadBalancerSourceRanges": list(gateway.cidrs)}})},
    )


def _balancer(name: str, gateway: Gateway) -> dict[str, str]:
    annotations = {
        f"{_BALANCER}type": "nlb",
        f"{_BALANCER}scheme": "internal" if name == "internal" else "internet-facing",
    }
    if name == "internal":
        annotations[f"{_BALANCER}internal"] = "true"
    if gateway.cidrs:
        annotations["service.beta.kubernetes.io/load-balancer-source-ranges"] = ",".join(gateway.cidrs)
    return annotations


def route(gateway: str, host: str, *, service: str, port: int) -> dict[str, Any]:
    """`spec` of an HTTPRoute: only `/v1/*` of one host. vLLM answers `/invocations` without a key, and has
    endpoints that change the server. No request timeout: a response may take long."""
    return {
        "parentRefs": [{"name": gateway, "namespace": GATEWAYS, "sectionName": _LISTENER}],
        "hostnames": [host],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}],
                "backendRefs": [{"name": service, "port": port}],
                "timeouts": {"request": "0s"},
            }
        ],
    }
