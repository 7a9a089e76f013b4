"""Taints of the nodes of pools, and what tolerates them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modelyard.hardware import accelerator_of
from modelyard.names import POOL_TAINT
from modelyard.planning.components import is_shared
from modelyard.spec import Environment, Pool

_EFFECT = "NoSchedule"


def taints(environment: Environment, name: str, pool: Pool) -> list[dict[str, Any]]:
    """`taints` of the nodes of pool `name`.

    Amazon EKS runs the admission plug-in ExtendedResourceToleration: a pod that requests `nvidia.com/gpu`
    tolerates the taint of that name, whosever it is. In a cluster of others, a second taint keeps it away.
    """
    accelerator = accelerator_of(pool.accelerator)
    own = [{"key": POOL_TAINT, "value": name, "effect": _EFFECT}] if is_shared(environment) else []
    return [{"key": accelerator.taint, "value": "true", "effect": _EFFECT}, *own]


def tolerations(environment: Environment, pools: Iterable[str]) -> list[dict[str, Any]]:
    """`tolerations` of pods that run on nodes of these pools."""
    keys = {each["key"] for name in pools for each in taints(environment, name, environment.pools[name])}
    return [{"key": key, "operator": "Exists", "effect": _EFFECT} for key in sorted(keys)]
