"""Taints of the nodes of pools, and what tolerates them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modelyard.hardware import accelerator_of
from modelyard.names import POOL_TAINT
from modelyard.planning.components import is_shared
from modelyard.spec import Environment

_EFFECT = "NoSchedule"


def taints(environment: Environment, pool: str) -> list[dict[str, Any]]:
    """`taints` of the nodes of a pool.

    Amazon EKS runs the admission plug-in ExtendedResourceToleration: a pod that requests `nvidia.com/gpu`
    tolerates the taint of that name, whosever it is. In a cluster of others, a second taint keeps it away.
    """
    accelerator = accelerator_of(environment.pools[pool].accelerator)
    own = [{"key": POOL_TAINT, "value": pool, "effect": _EFFECT}] if is_shared(environment) else []
    return [{"key": accelerator.taint, "value": "true", "effect": _EFFECT}, *own]


def tolerations(environment: Environment, pools: Iterable[str]) -> list[dict[str, Any]]:
    """`tolerations` of pods that run on nodes of these pools."""
    keys = {each["key"] for pool in pools for each in taints(environment, pool)}
    return [{"key": key, "operator": "Exists", "effect": _EFFECT} for key in sorted(keys)]
