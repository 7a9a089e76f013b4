"""Ports of a model server's pod."""

from __future__ import annotations

from typing import Final

PORT: Final = 8000
ENGINE_PORT: Final = 8200
"""The engine's port when a routing sidecar takes the pod's own port."""

PROXY_PORT: Final = 8081
"""Port of the proxy in a router's pod."""
PICKER_METRICS_PORT: Final = 9090
"""Metrics of the endpoint picker in a router's pod."""

PORT_NAME: Final = "http"
SERVICE_PORT: Final = 80
