"""Services as clients meet them: what listens on a Service's address leads to one of its ready endpoints.

kube-proxy would need root; this one is a process's own. The endpoints are those of the real controller.
"""

from __future__ import annotations

import itertools
import re
import select
import socket
import threading
from collections.abc import Iterator
from socketserver import BaseRequestHandler, ThreadingTCPServer

from tests.cluster.addresses import here, port_here
from tests.cluster.api import Api, Object

_SERVICE_LABEL = "kubernetes.io/service-name"
_NAME = re.compile(
    r"http://(?P<name>[a-z0-9-]+)\.(?P<space>[a-z0-9-]+)(\.svc[a-z.]*)?(:(?P<port>\d+))?(?=/|$)"
)

Key = tuple[str, str, str]
"""Namespace and name of a Service, and the name of one of its ports."""


class Proxy:
    """`play` follows the API server; `close` ends what listens."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._listening: dict[tuple[str, int], _Listener] = {}
        self._services: dict[tuple[str, str], Object] = {}
        self.endpoints: dict[Key, list[tuple[str, int]]] = {}

    def play(self) -> None:
        """One round."""
        self._services = {_place(item): item for item in self._api.list("v1", "Service")}
        self.endpoints = _endpoints(self._api.list("discovery.k8s.io/v1", "EndpointSlice"))
        wanted = dict(self._wanted())
        for address in self._listening.keys() - wanted.keys():
            self._listening.pop(address).close()
        for address in wanted.keys() - self._listening.keys():
            self._listening[address] = _Listener(address, self, wanted[address])

    def _wanted(self) -> Iterator[tuple[tuple[str, int], Key]]:
        for place, item in self._services.items():
            if item["spec"].get("selector") and item["spec"].get("clusterIP", "None") != "None":
                for port in item["spec"]["ports"]:
                    yield (
                        (here(item["spec"]["clusterIP"]), port_here(port["port"])),
                        (*place, port.get("name", "")),
                    )

    def url(self, text: str) -> str:
        """`text` with the address of a Service's name, such as http://chat.models/v1, on this machine."""
        found = _NAME.match(text)
        item = self._services.get((found["space"], found["name"])) if found else None
        if found is None or item is None:
            return text
        address = f"{here(item['spec']['clusterIP'])}:{port_here(int(found['port'] or 80))}"
        return f"http://{address}{text[found.end() :]}"

    def close(self) -> None:
        while self._listening:
            self._listening.popitem()[1].close()


def _place(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _endpoints(slices: list[Object]) -> dict[Key, list[tuple[str, int]]]:
    found: dict[Key, list[tuple[str, int]]] = {}
    for each in slices:
        service = each["metadata"].get("labels", {}).get(_SERVICE_LABEL, "")
        for port in each.get("ports") or []:
            key = each["metadata"]["namespace"], service, port.get("name") or ""
            found.setdefault(key, []).extend(
                (address, port["port"])
                for one in each.get("endpoints") or []
                if one.get("conditions", {}).get("ready")
                for address in one["addresses"]
            )
    return found


class _Listener(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], proxy: Proxy, key: Key) -> None:
        super().__init__(address, _Connection)
        self.proxy, self.key, self.turn = proxy, key, itertools.count()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients and pods that hang up are no news."""


class _Connection(BaseRequestHandler):
    server: _Listener

    def handle(self) -> None:
        ends = self.server.proxy.endpoints.get(self.server.key)
        if not ends:
            return  # hung up, as nobody is there
        address, port = ends[next(self.server.turn) % len(ends)]
        with socket.create_connection((here(address), port)) as other:
            _pass_on(self.request, other)


def _pass_on(client: socket.socket, pod: socket.socket) -> None:
    """Until one of them hangs up."""
    to = {client: pod, pod: client}
    while True:
        for ready in select.select([client, pod], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            to[ready].sendall(data)
