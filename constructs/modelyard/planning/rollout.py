"""How a Deployment replaces its pods without waiting for an accelerator that it holds itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["surge", "in-place"]


@dataclass(frozen=True)
class Rollout:
    """The Deployment's strategy. `interrupts`: the endpoint is away while the new replica loads.

    `surge_limit` is what the pool's limit must allow for a surge, in accelerators.
    """

    strategy: Strategy
    max_surge: int
    max_unavailable: int
    interrupts: bool
    surge_limit: int


def plan_rollout(*, wanted: str, replicas: int, limit: int, surge_limit: int) -> Rollout | None:
    """The strategy for `replicas` in a pool that allows `limit` accelerators and needs `surge_limit` for a
    surge.

    `auto` surges where one more replica surely finds a place and goes in place otherwise. None: `surge` is
    wanted and impossible.
    """
    room = limit >= surge_limit
    if wanted == "surge" and not room:
        return None
    if wanted == "surge" or (wanted == "auto" and room):
        return Rollout("surge", 1, 0, interrupts=False, surge_limit=surge_limit)
    return Rollout("in-place", 0, 1, interrupts=replicas <= 1, surge_limit=surge_limit)
