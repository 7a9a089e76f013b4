"""Ports of a model server's pod."""

from __future__ import annotations

from typing import Final

PORT: Final = 8000
ENGINE_PORT: Final = 8200
"""The engine's port when a routing sidecar takes the pod's own port."""

PORT_NAME: Final = "http"
SERVICE_PORT: Final = 80
