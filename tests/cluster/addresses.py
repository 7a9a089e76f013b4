"""The cluster's addresses on this machine: the same, with 127 as the first number.

Linux lets everybody listen on all of 127.0.0.0/8, and Kubernetes has no such addresses in endpoints: the
objects have 100.64.0.5 for a pod, its process listens on 127.64.0.5.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

PODS = range(64, 128)
"""Second numbers of 100.64.0.0/10, from which Modelyard's clusters take a /16 for pods."""

_KUBELET = 10250
"""Its port; whoever holds that of a network's first address has the network."""
_PRIVILEGED = 1024
_RAISED = 8000


def here(address: str) -> str:
    """Where a process of this machine stands for the cluster's `address`."""
    return f"127.{address.partition('.')[2]}"


def port_here(port: int) -> int:
    """The port of a Service on this machine: not everybody may listen on 80, which is 8080 here."""
    return port + _RAISED if port < _PRIVILEGED else port


@contextmanager
def pod_addresses() -> Iterator[Iterator[str]]:
    """Addresses for pods, of a network that no other cluster of this machine has."""
    for number in PODS:
        with socket.socket() as held:
            try:
                held.bind((f"127.{number}.0.0", _KUBELET))
            except OSError:
                continue
            held.listen(1)
            yield (f"100.{number}.{each // 250}.{each % 250 + 1}" for each in range(64_000))
            return
    raise OSError("64 clusters run on this machine already")
