"""What is not there is played: kubelets run every pod at once, and other controllers say that all is well.

Deployments, Jobs, ReplicaSets, claims and disruption budgets are not played: their controllers see the pods.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cluster.api import Api, Object, Refused
from tests.cluster.cluster import condition
from tests.cluster.rounds import rounds

CONTROLLERS = (
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ("source.toolkit.fluxcd.io/v1", "HelmRepository"),
    ("source.toolkit.fluxcd.io/v1", "GitRepository"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("external-secrets.io/v1", "ClusterSecretStore"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.k8s.aws/v1", "EC2NodeClass"),
)
"""Kinds whose objects become ready at once."""

_ELECTION = "--ha-enable-leader-election"
"""With it one picker of a router is healthy, and the others wait for its end (llm-d-router v0.9.0,
cmd/epp/runner/health.go)."""


class Player:
    """`failing`: beginnings of the names of Jobs that fail. `nodes`: pods run on nodes alone, where a
    scheduler and Karpenter work. `old`: beginnings of the names of pods that have run for hours. `silent`:
    nodes whose kubelet is gone. `loading`: seconds that a pod takes on its node until it serves."""

    def __init__(
        self, api: Api, controllers: Sequence[tuple[str, str]] = CONTROLLERS, *, nodes: bool = False
    ) -> None:
        self._api = api
        self._nodes = nodes
        self.old: set[str] = set()
        self.silent: set[str] = set()
        self.loading = 0.0
        self._begun: dict[str, float] = {}
        served = api.kinds()
        self._controllers = [
            each for each in controllers if each in served and not (nodes and "karpenter" in each[0])
        ]
        self.failing: set[str] = set()

    def play(self) -> None:
        """One round."""
        pods = self._api.list("v1", "Pod")
        led = any(_elects(pod) and condition(pod, "Ready") == "True" for pod in pods)
        for pod in pods:
            host = pod["spec"].get("nodeName")
            if host in self.silent or (self._nodes and not host):
                continue
            if pod["metadata"].get("deletionTimestamp"):
                if host:
                    self._api.delete(pod, at_once=True)
            elif (
                pod.get("status", {}).get("phase") == "Pending"
                and self._has_loaded(pod)
                and not (_elects(pod) and led)
            ):
                led = led or _elects(pod)
                self._run(pod)
        for job in self._api.list("batch/v1", "Job"):
            if self._fails(job["metadata"]["name"]) and not condition(job, "FailureTarget"):
                self._set(job, {"conditions": [_condition("FailureTarget", "True", "played")]})
        self.play_controllers()

    def play_controllers(self) -> None:
        """One round without kubelets."""
        for version, kind in self._controllers:
            for item in self._api.list(version, kind):
                seen = item.get("status", {}).get("observedGeneration")
                if condition(item, "Ready") != "True" or seen not in {None, item["metadata"]["generation"]}:
                    self._ready(item)

    def play_scaling(self) -> None:
        """KEDA's least: a Deployment that it scales has as many replicas."""
        for item in self._api.list("keda.sh/v1alpha1", "ScaledObject"):
            least, target = item["spec"].get("minReplicaCount", 0), item["spec"]["scaleTargetRef"]
            if target.get("kind", "Deployment") != "Deployment":
                continue
            space = item["metadata"]["namespace"]
            found = self._api.get("apps/v1", "Deployment", target["name"], space)
            if found and found["spec"]["replicas"] < least:
                self._api.scale(found, least)

    def _has_loaded(self, pod: Object) -> bool:
        begun = self._begun.setdefault(pod["metadata"]["uid"], time.monotonic())
        return time.monotonic() - begun >= self.loading

    def _is_old(self, pod: Object) -> bool:
        return any(pod["metadata"]["name"].startswith(each) for each in self.old)

    def _fails(self, name: str) -> bool:
        return any(name.startswith(each) for each in self.failing)

    def _run(self, pod: Object) -> None:
        owner = next(iter(pod["metadata"].get("ownerReferences", [])), {"kind": "", "name": ""})
        if owner["kind"] == "Job":
            if self._fails(owner["name"]):
                return
            ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": _now()}}
            status: dict[str, Any] = {
                "phase": "Succeeded",
                "containerStatuses": _containers(pod, ended, ready=False),
            }
        else:
            conditions = [
                _condition(kind, "True", "played") for kind in ("Ready", "ContainersReady", "Initialized")
            ]
            status = {
                "phase": "Running",
                "startTime": _now(timedelta(hours=3) if self._is_old(pod) else timedelta()),
                "podIP": "100.64.0.10",
                "podIPs": [{"ip": "100.64.0.10"}],
                "conditions": conditions,
                "containerStatuses": _containers(pod, {"running": {"startedAt": _now()}}, ready=True),
            }
        self._set(pod, status)

    def _ready(self, item: Object) -> None:
        status: dict[str, Any] = {"conditions": [_condition("Ready", "True", "played")]}
        if item["kind"] in {"HelmRelease", "HelmRepository", "GitRepository"}:
            status["observedGeneration"] = item["metadata"]["generation"]
        self._set(item, status)

    def _set(self, item: Object, status: dict[str, Any]) -> None:
        try:
            self._api.set_status(item, status)
        except Refused as refusal:
            if refusal.code not in {404, 409}:
                raise


@contextmanager
def playing(api: Api, *, nodes: bool = False) -> Iterator[Player]:
    """Play until the block ends; `nodes` as for Player.

    Raises:
        Exception: what went wrong while it played.
    """
    player = Player(api, nodes=nodes)
    with rounds(player.play):
        yield player


def _elects(pod: Object) -> bool:
    return any(
        argument.startswith(_ELECTION) and not argument.endswith("=false")
        for container in pod["spec"]["containers"]
        for argument in container.get("args", [])
    )


def _containers(pod: Object, state: dict[str, Any], *, ready: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        for each in pod["spec"]["containers"]
    ]


def _condition(kind: str, status: str, reason: str) -> dict[str, str]:
    now = _now()
    return {"type": kind, "status": status, "reason": reason, "message": "played", "lastTransitionTime": now}


def _now(ago: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
