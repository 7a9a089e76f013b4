"""A Kubernetes API over HTTP with everything that matters in a teardown: finalizers, owners, Karpenter, Flux,
and their failures."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from modelyard.live.api.kubernetes import Kind
from modelyard.live.clusters.kinds import (
    APPLICATION,
    AUTO_NODE_CLASS,
    CRON_JOB,
    DEPLOYMENT,
    GATEWAY,
    HELM_RELEASE,
    INGRESS,
    JOB,
    KUSTOMIZATION,
    LEADER_WORKER_SET,
    NAMESPACE,
    NODE_CLAIM,
    NODE_CLASS,
    NODE_OVERLAY,
    NODE_POOL,
    POD,
    SCALED_OBJECT,
    SERVICE,
    STATEFUL_SET,
)

BUILT_IN = (CRON_JOB, JOB, STATEFUL_SET, DEPLOYMENT, POD, INGRESS, SERVICE)
FLUX = (KUSTOMIZATION, HELM_RELEASE)
KARPENTER = (NODE_POOL, NODE_CLAIM, NODE_OVERLAY, NODE_CLASS)
EVERYTHING = (*BUILT_IN, *FLUX, *KARPENTER, SCALED_OBJECT, LEADER_WORKER_SET, GATEWAY)
AUTO_MODE = (*BUILT_IN, *FLUX, NODE_POOL, NODE_CLAIM, AUTO_NODE_CLASS)
ARGO_CD = (*BUILT_IN, *KARPENTER, APPLICATION)

_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)

Object = dict[str, Any]
MANAGED_BY = "app.kubernetes.io/managed-by"


@dataclass
class FakeKubernetes:
    """`requests` has every change that was asked for, and `answered` every request; controllers work after
    each list."""

    kinds: Iterable[Kind] = EVERYTHING
    stuck: set[str] = field(default_factory=set)  # names whose finalizers nobody takes away
    refused: set[str] = field(default_factory=set)  # plurals that answer 403
    nonsense: bool = False  # answers as a proxy does
    busy: int = 0  # requests that are answered 429 before any other
    requests: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    objects: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    url: str = ""
    _last: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def add(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        owner: str = "",
        finalizers: Iterable[str] = (),
        **content: Any,
    ) -> str:
        """Put an object in, and return its uid, which others name as their owner."""
        self._last += 1
        metadata = {
            "name": name,
            "uid": f"uid-{self._last}",
            "finalizers": list(finalizers),
            **({"namespace": namespace} if kind.namespaced else {}),
            **({"ownerReferences": [{"uid": owner, "kind": "Owner", "name": "owner"}]} if owner else {}),
            **content.pop("metadata", {}),
        }
        self.objects[kind.resource, namespace, name] = {
            "apiVersion": f"{kind.group}/{kind.version}" if kind.group else kind.version,
            "kind": kind.name,
            "metadata": metadata,
            **content,
        }
        return str(metadata["uid"])

    def names(self, kind: Kind) -> list[str]:
        """Names of the objects that exist."""
        return [name for resource, _, name in self.objects if resource == kind.resource]

    def kubeconfig(self, path: Path, arn: str, context: str = "lab") -> Path:
        """Write one as `aws eks update-kubeconfig` does: the cluster's entry is its ARN."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": arn, "cluster": {"server": self.url}}],
            "users": [{"name": arn, "user": {"token": "made-up"}}],
            "contexts": [{"name": context, "context": {"cluster": arn, "user": arn}}],
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str, str]:
        """Status, content type and text for a request."""
        url = urlsplit(path)
        with self._lock:
            self.answered.append(f"{method} {url.path}")
            if self.busy:
                self.busy -= 1
                return _status(429, "storage is (re)initializing")
            if self.nonsense:
                return 200, "text/html", "<html>Sign in</html>"
            place = _PATH.fullmatch(url.path)
            resource = self._resource(place)
            if place is None or resource is None:
                return 404, "text/plain; charset=utf-8", "404 page not found\n"
            if place["plural"] in self.refused:
                return _status(
                    403, f'{place["plural"]} is forbidden: User "ann" cannot {method.lower()} them'
                )
            if method == "GET":
                found = [
                    item
                    for (each, namespace, _), item in self.objects.items()
                    if each == resource and place["namespace"] in (None, namespace)
                ]
                text = json.dumps({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": found})
                self._settle()
                return 200, "application/json", text
            key = (resource, place["namespace"] or "", place["name"])
            self.requests.append(f"{method} {place['plural']}/{place['name']}")
            if key not in self.objects:
                return _status(404, f"{place['name']} not found")
            if method == "PATCH":
                _merge(self.objects[key], json.loads(body))
            else:
                policy = parse_qs(url.query).get("propagationPolicy", [""])[0]
                self._delete(key, policy or (json.loads(body or b"{}").get("propagationPolicy") or ""))
            return (
                200,
                "application/json",
                json.dumps(self.objects.get(key, {"kind": "Status", "status": "Success"})),
            )

    def _resource(self, place: re.Match[str] | None) -> str | None:
        if place is None:
            return None
        wanted = (place["group"] or "", place["version"] or place["core"], place["plural"])
        for kind in self.kinds:
            if (kind.group, kind.version, kind.plural) == wanted:
                return kind.resource
        return None

    def _delete(self, key: tuple[str, str, str], policy: str = "") -> None:
        metadata = self.objects[key]["metadata"]
        metadata["deletionTimestamp"] = "2026-11-21T10:00:00Z"
        if not metadata["finalizers"] and key[0] != POD.resource:  # a pod has its grace period
            # The API server's own default for jobs, and nothing else here.
            self._remove(key, orphan=policy == "Orphan" or (key[0] == "jobs.batch" and not policy))

    def _remove(self, key: tuple[str, str, str], *, orphan: bool = False) -> None:
        gone = self.objects.pop(key)
        if key[0] == NAMESPACE.resource:
            for other in [each for each in self.objects if each[1] == key[2]]:
                self.objects.pop(other, None)
        if key[0] == DEPLOYMENT.resource and self._applied():
            self.objects[key] = {**gone, "metadata": {**gone["metadata"], "deletionTimestamp": None}}
            return
        for other, item in list(self.objects.items()):
            owners = [each["uid"] for each in item["metadata"].get("ownerReferences", ())]
            if gone["metadata"]["uid"] in owners and not orphan and other in self.objects:
                self._delete(other, "Background")

    def _applied(self) -> bool:
        """Whether Flux or Argo CD brings back what is deleted."""
        for (resource, _, _), item in self.objects.items():
            spec = item.get("spec", {})
            if item["metadata"].get("labels", {}).get(MANAGED_BY, "modelyard") != "modelyard":
                continue  # it brings back what is somebody else's
            if resource == KUSTOMIZATION.resource and not spec.get("suspend"):
                return True
            if resource == APPLICATION.resource and spec.get("syncPolicy", {}).get("automated"):
                return True
        return False

    def _settle(self) -> None:
        """What controllers do meanwhile: Karpenter's finalizers go only while it is installed."""
        karpenter = (HELM_RELEASE.resource, "flux-system", "karpenter") in self.objects or not self.names(
            HELM_RELEASE
        )
        for key, item in list(self.objects.items()):
            if (
                not item["metadata"].get("deletionTimestamp")
                or key[2] in self.stuck
                or key not in self.objects
            ):
                continue
            if key[0] in (NODE_CLAIM.resource, NODE_CLASS.resource) and not karpenter:
                continue
            self._remove(key)

    @contextmanager
    def served(self) -> Iterator[FakeKubernetes]:
        """Answer on 127.0.0.1 until the end of the block."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, kind, text = fake.answer(self.command, self.path, body)
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_DELETE = do_PATCH = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _status(code: int, message: str) -> tuple[int, str, str]:
    text = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return code, "application/json", json.dumps({**text, "reason": "Forbidden", "code": code})


def _merge(target: Object, change: Object) -> None:
    """RFC 7386."""
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def busy(fake: FakeKubernetes, namespace: str = "models") -> FakeKubernetes:
    """A cluster as Flux leaves it: two models on two nodes, a fetch job, a gateway, add-ons."""
    for name in ("addons", "models", "platform"):
        fake.add(KUSTOMIZATION, name, "flux-system", spec={"wait": True})
    fake.add(SCALED_OBJECT, "qwen", namespace, finalizers=["finalizer.keda.sh"])
    job = fake.add(JOB, "fetch", namespace)
    fake.add(POD, "fetch-1", namespace, owner=job, spec={})
    for name in ("qwen", "llama"):
        deployment = fake.add(DEPLOYMENT, name, namespace)
        fake.add(POD, f"{name}-1", namespace, owner=deployment, spec={"terminationGracePeriodSeconds": 330})
    gateway = fake.add(GATEWAY, "internal", "gateways", finalizers=["gateway-controller"])
    fake.add(SERVICE, "internal-istio", "gateways", owner=gateway, spec={"type": "LoadBalancer"})
    fake.add(SERVICE, "qwen", namespace, spec={"type": "ClusterIP"})
    fake.add(NODE_CLASS, "g6e", finalizers=["karpenter.k8s.aws/termination"])
    pool = fake.add(NODE_POOL, "g6e")
    for number in (1, 2):
        fake.add(
            NODE_CLAIM,
            f"g6e-{number}",
            owner=pool,
            finalizers=["karpenter.sh/termination"],
            metadata={"labels": {"karpenter.sh/nodepool": "g6e"}},
            status={"nodeName": f"ip-10-0-0-{number}"},
        )
    for name in ("karpenter", "karpenter-crd", "keda"):
        fake.add(HELM_RELEASE, name, "flux-system", finalizers=["finalizers.fluxcd.io"])
    return fake
