"""Checks over all models together: what pools and the account hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modelyard.findings import Finding
from modelyard.planning.quota import QuotaNeed
from modelyard.spec.environment import Environment


def limit_findings(demand: Mapping[str, Mapping[str, int]], environment: Environment) -> Iterator[Finding]:
    """Pools whose models can ask for more than the limit; `demand` is accelerators by pool and model."""
    for name, asked in demand.items():
        pool, total = environment.pools[name], sum(asked.values())
        if total > pool.limit:
            yield Finding(
                "CAP002",
                f"pool {name} allows {pool.limit} {pool.accelerator}, models can ask for {total}: "
                + ", ".join(f"{model} {count}" for model, count in sorted(asked.items())),
                f"raise its limit to {total}, or lower replicas",
                subject=f"environment {environment.name}",
                field=("pools", name, "limit"),
            )


def quota_finding(need: QuotaNeed, environment: Environment) -> Finding:
    return Finding(
        "QUOTA001",
        f"{need.name} ({need.code}): {need.needed_vcpu} vCPU needed, quota {need.available}",
        f"request {need.needed_vcpu} in Service Quotas, {environment.region}",
        subject=f"environment {environment.name}",
        field=("quotas", need.code),
    )
