"""A pod's probes, asked as a kubelet asks them: of the pod's address, at the port that the probe names."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.cluster.addresses import here


def answers(address: str, container: Mapping[str, Any], probe: Mapping[str, Any]) -> bool:
    """Whether the probe passes; one that runs a command does."""
    seconds = probe.get("timeoutSeconds", 1)
    try:
        if http := probe.get("httpGet"):
            asked = HTTPConnection(here(address), _port(container, http["port"]), timeout=seconds)
            try:
                asked.request("GET", http.get("path", "/"))
                return 200 <= asked.getresponse().status < 400
            finally:
                asked.close()
        if tcp := probe.get("tcpSocket"):
            socket.create_connection((here(address), _port(container, tcp["port"])), seconds).close()
    except (OSError, HTTPException, LookupError):
        return False
    return True


def _port(container: Mapping[str, Any], port: int | str) -> int:
    """By its name, if it has one.

    Raises:
        LookupError: no port of the container is called so.
    """
    if isinstance(port, int):
        return port
    return {each.get("name"): int(each["containerPort"]) for each in container.get("ports", [])}[port]
