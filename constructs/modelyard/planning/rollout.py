"""How a Deployment replaces its pods without waiting for an accelerator that it holds itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["surge", "in-place"]


@dataclass(frozen=True)
class Rollout:
    """The Deployment's strategy. `interrupts`: the endpoint is away while the new replica loads."""

    strategy: Strategy
    max_surge: int
    max_unavailable: int
    interrupts: bool


def plan_rollout(*, wanted: str, replicas: int, accelerators: int, headroom: int) -> Rollout | None:
    """The strategy for `replicas` of `accelerators` each, with `headroom` accelerators to spare in the pool.

    `auto` surges where one more replica fits and goes in place otherwise. None: `surge` is wanted and impossible.
    """
    room = headroom >= accelerators
    if wanted == "surge" and not room:
        return None
    if wanted == "surge" or (wanted == "auto" and room):
        return Rollout("surge", max_surge=1, max_unavailable=0, interrupts=False)
    return Rollout("in-place", max_surge=0, max_unavailable=1, interrupts=replicas == 1)
