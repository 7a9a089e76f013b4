"""Envoy in front of an InferencePool: every request goes to the replica that the endpoint picker names."""

from __future__ import annotations

from typing import Any

from modelyard.objects.pods.ports import PROXY_PORT

READY_PORT = 19001

_TYPE = "type.googleapis.com/envoy.extensions"
_HTTP = f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = {
    "name": "envoy.filters.http.router",
    "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"},
}
# A generation may run long, and stay silent while its prompt is read.
_LONGEST = "86400s"


def envoy_config(picker_port: int) -> dict[str, Any]:
    """Static configuration: one listener for requests, one for probes, the picker beside it, the replicas by
    address."""
    return {
        "static_resources": {
            "listeners": [_requests(), _ready()],
            "clusters": [_replicas(), _picker(picker_port)],
        }
    }


def _listener(name: str, port: int, manager: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": port}},
        "filter_chains": [
            {
                "filters": [
                    {
                        "name": "envoy.filters.network.http_connection_manager",
                        "typed_config": {"@type": _HTTP, "stat_prefix": name, **manager},
                    }
                ]
            }
        ],
    }


def _requests() -> dict[str, Any]:
    mode = "FULL_DUPLEX_STREAMED"
    picker = {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": f"{_TYPE}.filters.http.ext_proc.v3.ExternalProcessor",
            # Without the picker no replica is known: return an error instead of guessing.
            "failure_mode_allow": False,
            "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}, "timeout": "10s"},
            "message_timeout": "1000s",
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SEND",
                "request_body_mode": mode,
                "response_body_mode": mode,
                "request_trailer_mode": "SEND",
                "response_trailer_mode": "SEND",
            },
        },
    }
    # Clients reach only the API; the picker's answer overwrites a replica that a client names.
    route = {"cluster": "replicas", "timeout": _LONGEST, "idle_timeout": _LONGEST}
    host = {"name": "model", "domains": ["*"], "routes": [{"match": {"prefix": "/v1/"}, "route": route}]}
    return _listener(
        "requests",
        PROXY_PORT,
        {
            "http_filters": [picker, _ROUTER],
            "normalize_path": True,
            "merge_slashes": True,
            "route_config": {"name": "model", "virtual_hosts": [host]},
        },
    )


def _ready() -> dict[str, Any]:
    check = {
        "name": "envoy.filters.http.health_check",
        "typed_config": {
            "@type": f"{_TYPE}.filters.http.health_check.v3.HealthCheck",
            "pass_through_mode": False,
            "headers": [{"name": ":path", "string_match": {"exact": "/ready"}}],
        },
    }
    nothing = {"name": "ready", "virtual_hosts": [{"name": "ready", "domains": ["*"], "routes": []}]}
    return _listener("ready", READY_PORT, {"http_filters": [check, _ROUTER], "route_config": nothing})


def _replicas() -> dict[str, Any]:
    return {
        "name": "replicas",
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "10s",
        "original_dst_lb_config": {
            "use_http_header": True,
            "http_header_name": "x-gateway-destination-endpoint",
        },
    }


def _picker(port: int) -> dict[str, Any]:
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}
    return {
        "name": "picker",
        "type": "STATIC",
        "connect_timeout": "10s",
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": f"{_TYPE}.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
        "load_assignment": {
            "cluster_name": "picker",
            "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}],
        },
    }
