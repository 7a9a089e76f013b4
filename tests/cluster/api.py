"""The API server as the tests ask it: objects in, objects out, and refusals in its own words."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

Object = dict[str, Any]

_APPLY = "application/apply-patch+yaml"  # JSON is YAML
_MERGE = "application/merge-patch+json"
MANAGER = "tests"
_BUSY = 120
"""Seconds for which such an answer is asked again."""
_LATER = (429, 503)
"""For a moment after a CRD came, and while a server starts."""
_AWAY = 30
"""Seconds that a server may take to start again."""


class Refused(Exception):
    """The API server's answer to something that it does not do."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Api:
    """One user's connection to one API server. Reads no kubeconfig and no variable of the shell."""

    def __init__(self, address: str, token: str, authority: Path) -> None:
        self._http = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cafile=str(authority)),
            timeout=60,
            trust_env=False,
        )
        self._places: dict[tuple[str, str], tuple[str, bool]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ready(self) -> bool:
        """Whether it says that it is ready."""
        try:
            return self._http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def apply(
        self, item: Mapping[str, Any], *, dry_run: bool = False, manager: str = MANAGER, force: bool = True
    ) -> Object:
        """Server-side apply, unknown fields refused.

        Raises:
            Refused: by validation, by admission, or because the kind is unknown.
        """
        asked = {"fieldManager": manager, "fieldValidation": "Strict", "force": str(force).lower()}
        if dry_run:
            asked["dryRun"] = "All"
        return self._ask("PATCH", self._path(item), params=asked, content=item, kind=_APPLY)

    def create(self, item: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """As `apply`, for one that must not be there.

        Raises:
            Refused: as `apply`.
        """
        asked = {
            "fieldManager": MANAGER,
            "fieldValidation": "Strict",
            **({"dryRun": "All"} if dry_run else {}),
        }
        folder = self._path(item).rpartition("/")[0]
        return self._ask("POST", folder, params=asked, content=item, kind="application/json")

    def set_status(self, item: Mapping[str, Any], status: Mapping[str, Any]) -> Object:
        """Merge `status` into the object's, as a kubelet or a controller would."""
        content = {"status": status}
        return self._ask("PATCH", f"{self._path(item)}/status", content=content, kind=_MERGE)

    def merge(self, item: Mapping[str, Any], change: Mapping[str, Any]) -> Object:
        """Merge `change` into the object."""
        return self._ask("PATCH", self._path(item), content=change, kind=_MERGE)

    def scale(self, item: Mapping[str, Any], replicas: int) -> Object:
        """Set the number of replicas as an autoscaler does."""
        content = {"spec": {"replicas": replicas}}
        return self._ask("PATCH", f"{self._path(item)}/scale", content=content, kind=_MERGE)

    def bind(self, pod: Mapping[str, Any], node: str) -> None:
        """Put a pod on a node, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        content = {"apiVersion": "v1", "kind": "Binding", "target": target, "metadata": {"name": _name(pod)}}
        self._ask("POST", f"{self._path(pod)}/binding", content=content, kind="application/json")

    def get(self, version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None."""
        where = {"name": name, **({"namespace": namespace} if namespace else {})}
        try:
            return self._ask("GET", self._path({"apiVersion": version, "kind": kind, "metadata": where}))
        except Refused as refusal:
            if refusal.code == 404:
                return None
            raise

    def list(self, version: str, kind: str, namespace: str = "") -> list[Object]:
        """Every object of a kind, of all namespaces by default."""
        plural, _ = self._place(version, kind)
        folder = f"{_root(version)}/namespaces/{namespace}" if namespace else _root(version)
        items: list[Object] = self._ask("GET", f"{folder}/{plural}")["items"]
        return [{"apiVersion": version, "kind": kind, **item} for item in items]

    def delete(self, item: Mapping[str, Any], *, at_once: bool = False) -> None:
        """Ask for its end; no error if it is gone. `at_once`: a pod whose kubelet will not answer."""
        content: Object = {"propagationPolicy": "Background"}
        if at_once:
            content["gracePeriodSeconds"] = 0
        try:
            self._ask("DELETE", self._path(item), content=content, kind="application/json")
        except Refused as refusal:
            if refusal.code != 404:
                raise

    def discovers(self, kind: str) -> bool:
        """Whether the list of all kinds, which clients ask for at their start, has it: it comes later than
        the kind itself."""
        wanted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        answer = self._http.get("/apis", headers={"Accept": wanted}).json()
        return any(
            resource["responseKind"]["kind"] == kind
            for group in answer["items"]
            for version in group["versions"]
            for resource in version["resources"]
        )

    def kinds(self) -> set[tuple[str, str]]:
        """Every (apiVersion, kind) that is served, custom resources after their CRD is established."""
        groups = self._ask("GET", "/apis")["groups"]
        versions = ["v1", *(each["groupVersion"] for group in groups for each in group["versions"])]
        return {(version, each["kind"]) for version in versions for each in self._resources(version)}

    def _resources(self, version: str) -> Iterable[Object]:
        try:
            found: list[Object] = self._ask("GET", _root(version))["resources"]
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return []
        return found

    def _place(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._places:
            for each in self._resources(version):
                if "/" not in each["name"]:
                    self._places[version, each["kind"]] = (each["name"], each["namespaced"])
        try:
            return self._places[version, kind]
        except KeyError:
            raise Refused(404, f"no kind {kind} in {version}") from None

    def _path(self, item: Mapping[str, Any]) -> str:
        plural, namespaced = self._place(item["apiVersion"], item["kind"])
        root = _root(item["apiVersion"])
        if namespaced:
            root += f"/namespaces/{item['metadata'].get('namespace', 'default')}"
        return f"{root}/{plural}/{_name(item)}"

    def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Object:
        text = None if content is None else json.dumps(content, default=str)
        headers = {} if content is None else {"Content-Type": kind}

        def asked() -> httpx.Response:
            last = time.monotonic() + _AWAY
            while True:
                try:
                    return self._http.request(method, path, params=params, content=text, headers=headers)
                except httpx.TransportError:
                    if time.monotonic() > last:
                        raise
                    time.sleep(0.1)

        answer = asked()
        end = time.monotonic() + _BUSY
        while answer.status_code in _LATER and time.monotonic() < end:
            time.sleep(0.1)
            answer = asked()
        if answer.is_error:
            raise Refused(answer.status_code, _message(answer))
        found: Object = answer.json()
        return found


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _name(item: Mapping[str, Any]) -> str:
    return str(item["metadata"].get("name", ""))


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, LookupError, TypeError):
        return answer.text[:500]
