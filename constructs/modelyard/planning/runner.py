"""What starts the servers of a plan: our own workloads, unless a target says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.engines import Release


@dataclass(frozen=True, kw_only=True)
class Runner:
    """How servers differ from our own workloads, as far as other objects have to know.

    `label`: the label whose value is the server's name on each of its pods; ours are found by the
    recommended labels. `routed`: whether prefill and decode replicas are called by our own router.
    `engine_port`: the port of an engine behind a routing sidecar, where it is not ours. `stand_in`: the
    release whose paths and metrics every server has, whatever engine the plan chose.
    """

    label: str | None = None
    routed: bool = True
    engine_port: int | None = None
    stand_in: Release | None = None


OURS = Runner()
