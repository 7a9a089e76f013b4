"""The kubelets of a cluster for people: pods of models are processes, and are ready when their probes say so.

Real: arguments, ports, probes and the order of an end (out of the endpoints, preStop, SIGTERM). Jobs that ask
a model run their own program. Every other pod is played: it has an address and nothing runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.cluster.api import Api, Object, Refused
from tests.cluster.containers import Command, component, played_engine, program
from tests.cluster.probes import answers
from tests.cluster.programs import Running, running

Status = dict[str, Any]

_EVERY = 10
"""Seconds between two probes where the pod does not say (Kubernetes, Probe.periodSeconds)."""
_OFTEN = 0.5
"""Seconds between two startup probes: there is no reason to wait for an engine that loads nothing."""


class _Process:
    """Of one pod."""

    def __init__(self, name: str, command: Command, folder: Path) -> None:
        self._name, self._command, self._folder = name, command, folder
        self._stack = ExitStack()
        self.restarts = -1
        self.begun = False  # its startup probe has passed
        self.failures = 0
        self.next_probe = 0.0
        self.ends_at: float | None = None  # when SIGTERM comes
        self.asked = False
        self.start()

    def start(self) -> None:
        self.restarts += 1
        self.begun, self.failures, self.next_probe = False, 0, 0.0
        command = self._command
        self.running: Running = self._stack.enter_context(
            running(
                self._name,
                command.arguments,
                self._folder,
                variables=command.variables,
                executable=command.executable,
            )
        )

    def close(self) -> None:
        self._stack.close()


class Kubelets:
    """`play` is one round; `close` ends every process.

    `account`: variables with which programs meet AWS. `url`: an address of a Service's name, on this machine.
    `engine`: what a server's pod runs at an address.
    """

    def __init__(
        self,
        api: Api,
        folder: Path,
        addresses: Iterator[str],
        *,
        account: Mapping[str, str],
        url: Callable[[str], str],
        engine: Callable[[Object, str], Command] = played_engine,
    ) -> None:
        self._api, self._folder, self._addresses = api, folder, addresses
        self._account, self._url, self._engine = account, url, engine
        self._processes: dict[str, _Process] = {}

    def play(self) -> None:
        """One round over all pods that a scheduler has bound."""
        pods = [pod for pod in self._api.list("v1", "Pod") if pod["spec"].get("nodeName")]
        for pod in pods:
            uid, phase = pod["metadata"]["uid"], pod.get("status", {}).get("phase")
            if pod["metadata"].get("deletionTimestamp"):
                self._end(pod)
            elif uid in self._processes:
                self._look(pod, self._processes[uid])
            elif phase == "Pending":
                self._start(pod)
        for uid in self._processes.keys() - {pod["metadata"]["uid"] for pod in pods}:
            self._processes.pop(uid).close()

    def close(self) -> None:
        for each in self._processes.values():
            each.running.ask_to_end()
        while self._processes:
            self._processes.popitem()[1].close()

    def _start(self, pod: Object) -> None:
        address = next(self._addresses)
        if command := self._command(pod, address):
            started = _Process(pod["metadata"]["name"], command, self._folder)
            self._processes[pod["metadata"]["uid"]] = started
            self._tell(pod, _running(pod, ready=False, address=address))
        elif _owner(pod) == "Job":
            self._tell(pod, _ended(pod, 0))
        else:
            self._tell(pod, _running(pod, ready=True, address=address))

    def _command(self, pod: Object, address: str) -> Command | None:
        match component(pod):
            case "server":
                return self._engine(pod, address)
            case "endpoint-check":
                place = self._folder / pod["metadata"]["name"]
                return program(self._api, pod, place, account=self._account, url=self._url)
        return None

    def _look(self, pod: Object, process: _Process) -> None:
        """At its process, and at its probes."""
        code = process.running.code
        if _owner(pod) == "Job":
            if code is not None:
                self._tell(pod, _ended(pod, code))
                self._processes.pop(pod["metadata"]["uid"]).close()
            return
        if code is not None:
            process.start()
            self._tell(pod, _running(pod, ready=False, restarts=process.restarts))
            return
        if time.monotonic() < process.next_probe:
            return
        container = pod["spec"]["containers"][0]
        probe = container.get("readinessProbe", {}) if process.begun else _startup(container)
        passed = answers(pod["status"]["podIP"], container, probe)
        process.begun = process.begun or passed
        process.failures = 0 if passed else process.failures + 1
        period = probe.get("periodSeconds", _EVERY) if process.begun else _OFTEN
        process.next_probe = time.monotonic() + period
        ready = process.begun and process.failures < probe.get("failureThreshold", 3)
        if ready != pod["status"]["containerStatuses"][0]["ready"]:
            self._tell(pod, _running(pod, ready=ready, restarts=process.restarts))

    def _end(self, pod: Object) -> None:
        """As a kubelet does: preStop, SIGTERM, and the pod is gone when its process is."""
        process = self._processes.get(pod["metadata"]["uid"])
        if process and process.running.code is None:
            if process.ends_at is None:
                process.ends_at = time.monotonic() + _pause(pod)
            if time.monotonic() >= process.ends_at and not process.asked:
                process.asked = True
                process.running.ask_to_end()
            return
        if process:
            self._processes.pop(pod["metadata"]["uid"]).close()
        self._api.delete(pod, at_once=True)

    def _tell(self, pod: Object, status: Status) -> None:
        try:
            self._api.set_status(pod, status)
        except Refused as refusal:
            if refusal.code not in {404, 409}:
                raise


def _owner(pod: Object) -> str:
    return next((str(each["kind"]) for each in pod["metadata"].get("ownerReferences", [])), "")


def _startup(container: Object) -> Object:
    found: Object = container.get("startupProbe") or container.get("readinessProbe") or {}
    return found


def _pause(pod: Object) -> float:
    """Seconds of its preStop hook."""
    hook = pod["spec"]["containers"][0].get("lifecycle", {}).get("preStop", {})
    return float(hook.get("sleep", {}).get("seconds", 0))


def _running(pod: Object, *, ready: bool, address: str = "", restarts: int = 0) -> Status:
    found: Status = {
        "phase": "Running",
        "startTime": pod.get("status", {}).get("startTime") or _now(),
        "conditions": _conditions(pod, ready),
        "containerStatuses": _containers(pod, {"running": {"startedAt": _now()}}, ready, restarts),
    }
    if address:
        found |= {"podIP": address, "podIPs": [{"ip": address}], "hostIP": address}
    return found


def _ended(pod: Object, code: int) -> Status:
    reason = "Error" if code else "Completed"
    state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": _now()}}
    return {
        "phase": "Failed" if code else "Succeeded",
        "conditions": _conditions(pod, False),
        "containerStatuses": _containers(pod, state, False, 0),
    }


def _conditions(pod: Object, ready: bool) -> list[dict[str, str]]:
    """With the scheduler's own."""
    said = {"Initialized": True, "Ready": ready, "ContainersReady": ready}
    kept = [each for each in pod["status"].get("conditions", []) if each["type"] not in said]
    return [
        *kept,
        *({"type": kind, "status": str(value), "lastTransitionTime": _now()} for kind, value in said.items()),
    ]


def _containers(pod: Object, state: Status, ready: bool, restarts: int) -> list[Status]:
    return [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": restarts,
            "state": state,
        }
        for each in pod["spec"]["containers"]
    ]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
