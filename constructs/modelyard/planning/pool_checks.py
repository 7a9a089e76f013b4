"""Checks over all models together: what pools and the account hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.planning.choice import Choice
from modelyard.planning.quota import QuotaNeed
from modelyard.spec.environment import Environment
from modelyard.spec.model import Model


def limit_findings(
    headroom: dict[str, int], models: dict[str, Model], choices: dict[str, Choice], environment: Environment
) -> Iterator[Finding]:
    for pool, room in headroom.items():
        if room >= 0:
            continue
        asked: defaultdict[str, int] = defaultdict(int)
        for name, choice in choices.items():
            if choice.placement.pool_name == pool:
                asked[name] += models[name].replicas.max * choice.serving.count
        limit = environment.pools[pool].limit
        yield Finding(
            "CAP002",
            f"pool {pool} allows {limit} {environment.pools[pool].accelerator}, models can ask for {limit - room}: "
            + ", ".join(f"{name} {count}" for name, count in sorted(asked.items())),
            f"raise its limit to {limit - room}, or lower replicas",
            subject=f"environment {environment.name}",
            field=("pools", pool, "limit"),
        )


def quota_finding(need: QuotaNeed, environment: Environment) -> Finding:
    return Finding(
        "QUOTA001",
        f"{need.name} ({need.code}): {need.needed_vcpu} vCPU needed, quota {need.available}",
        f"request {need.needed_vcpu} in Service Quotas, {environment.region}",
        subject=f"environment {environment.name}",
        field=("quotas", need.code),
    )
