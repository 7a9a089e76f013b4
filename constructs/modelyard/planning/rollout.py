"""Deployment strategies that never wait for an accelerator that the old pod holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["surge", "in-place"]


@dataclass(frozen=True)
class Rollout:
    """The Deployment's strategy. `interrupts`: the endpoint is down while the new replica loads.

    `surge_limit`: the pool limit that a surge needs, in accelerators.
    """

    strategy: Strategy
    max_surge: int
    max_unavailable: int
    interrupts: bool
    surge_limit: int


def plan_rollout(*, wanted: str, replicas: int, limit: int, surge_limit: int) -> Rollout | None:
    """The strategy for `replicas` in a pool with this `limit`, where a surge needs `surge_limit`
    accelerators.

    `auto` surges if one more replica is certain to fit, otherwise rolls in place. None: `surge` is requested
    but does not fit.
    """
    room = limit >= surge_limit
    if wanted == "surge" and not room:
        return None
    if wanted == "surge" or (wanted == "auto" and room):
        return Rollout("surge", 1, 0, interrupts=False, surge_limit=surge_limit)
    return Rollout("in-place", 0, 1, interrupts=replicas <= 1, surge_limit=surge_limit)
