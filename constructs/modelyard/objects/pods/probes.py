"""Probes that never kill a loading model and always kill a hung one, and the drain that lets streams
finish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelyard.engines.release import Drain as DrainKind
from modelyard.objects.pods.ports import PORT_NAME

_STARTUP_PERIOD = 10
_READINESS = {"periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 3}
# 150 s: longer than the 15 s after which a busy server is taken out of its Service.
_LIVENESS = {"periodSeconds": 15, "timeoutSeconds": 15, "failureThreshold": 10}


def probes(*, startup_budget: int, path: str = "/health", port: str = PORT_NAME) -> dict[str, Any]:
    """Three probes on one path; `startup_budget`: seconds until the startup probe gives up.

    Until the engine is ready its port refuses connections or returns 503, so one path serves all three.
    """
    get = {"httpGet": {"path": path, "port": port}}
    return {
        "startupProbe": {
            **get,
            "periodSeconds": _STARTUP_PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": -(-startup_budget // _STARTUP_PERIOD),
        },
        "readinessProbe": {**get, **_READINESS},
        "livenessProbe": {**get, **_LIVENESS},
    }


@dataclass(frozen=True)
class Drain:
    """Seconds of a graceful stop: wait until endpoints are removed, let requests finish, stop the engine.

    An engine that does not finish its requests on SIGTERM is signalled only after their time is over.
    """

    requests: int
    kind: DrainKind = "flag"
    endpoints: int = 15
    teardown: int = 30  # measured 11 s with vLLM 0.32 on two cores

    @property
    def pause(self) -> int:
        """Seconds between the pod's deletion and SIGTERM."""
        return self.endpoints + (self.requests if self.kind == "wait" else 0)

    @property
    def grace(self) -> int:
        """terminationGracePeriodSeconds: longer than the whole drain."""
        return self.endpoints + self.requests + self.teardown

    @property
    def pre_stop(self) -> dict[str, Any]:
        return {"sleep": {"seconds": self.pause}}
