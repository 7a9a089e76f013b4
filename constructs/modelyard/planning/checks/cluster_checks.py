"""Checks of what an existing cluster has against what is rendered for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.hardware import Prices, accelerator_named
from modelyard.planning.admission import priced_by
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.components import needed_components
from modelyard.releases import components, minors
from modelyard.spec.environment import Environment


def old_components(proposal: Proposal) -> Iterator[Finding]:
    """Components of an existing cluster that do not know what is rendered for them."""
    environment = proposal.environment
    existing = environment.cluster.existing
    needed = needed_components(environment, proposal.plans) if existing else frozenset()
    for name, version in existing.has.items() if existing else ():
        least = _least(name, environment) if name in needed else None
        if least and _numbers(version) < _numbers(least):
            yield Finding(
                "CLUSTER001",
                f"the cluster has {name} {version}, and what is rendered needs {least} or newer",
                f"upgrade it and correct the version here; without has.{name} Modelyard would install a second one",
                subject=proposal.subject,
                field=("cluster", "existing", "has", name),
            )


def gates_of_others(proposal: Proposal) -> Iterator[Finding]:
    """Settings that depend on a feature gate of a Karpenter that Modelyard does not install."""
    cluster = proposal.environment.cluster
    if cluster.auto_mode or not cluster.has("karpenter"):
        return
    for field, gate in _gates(proposal.environment, proposal.prices):
        yield Finding(
            "CLUSTER002",
            f"{'.'.join(field)} depends on the feature gate {gate} of the cluster's own Karpenter, which is off by default",
            "turn it on there and acknowledge this, or take the setting out"
            if gate != "NodeRepair"
            else "turn it on there and acknowledge this, or set nodeRepair: false",
            subject=proposal.subject,
            field=field,
        )


def _gates(environment: Environment, prices: Prices) -> Iterator[tuple[tuple[str, ...], str]]:
    if environment.cluster.node_repair:
        yield ("cluster", "nodeRepair"), "NodeRepair"
    for name, pool in environment.pools.items():
        if pool.nodes:
            yield ("pools", name, "nodes"), "StaticCapacity"
        if accelerator_named(pool.accelerator) and priced_by(pool, environment, prices):
            yield ("pools", name, "prices"), "NodeOverlay"


def _least(name: str, environment: Environment) -> str | None:
    component = components().get(name)
    if component is None or component.least is None:
        return None
    if name != "karpenter":
        return component.least
    return max(component.least, minors()[environment.cluster.version].least_karpenter, key=_numbers)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", version)[:2]))
