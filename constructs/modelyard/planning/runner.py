"""The controller that runs a plan's servers: our own workloads, unless a target replaces them."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Release


@dataclass(frozen=True, kw_only=True)
class Runner:
    """How another controller's servers differ from our own workloads, for the objects that refer to them.

    `label`: the pod label whose value is the server's name; our own pods are selected by the recommended
    labels. `routed`: whether our router calls prefill and decode replicas. `engine_port`: the engine's port
    behind a routing sidecar, if it differs from ours. `stand_in`: the release that defines paths and metrics
    of every server, whatever engine the plan chose.
    """

    label: str | None = None
    routed: bool = True
    engine_port: int | None = None
    stand_in: Release | None = None


OURS = Runner()
