"""Warnings about waste: idle accelerators, and tokens computed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from modelyard.findings import Finding
from modelyard.memory.requests import LEAST_TOKENS_OF_A_SEQUENCE
from modelyard.planning.checks.proposal import Proposal
from modelyard.planning.records import ModelPlan


def stranded_accelerators(proposal: Proposal) -> Iterator[Finding]:
    """Idle accelerators on a model's nodes that no other model on the same instance types can fill."""
    used: Counter[tuple[str, str]] = Counter()
    for planned in proposal.plans:
        for instance in planned.placement.instance_types:
            used[planned.placement.pool_name, instance.name] += _used(planned)
    for planned in proposal.plans:
        placement, idle = planned.placement, planned.cost.idle_accelerators
        filled = used[placement.pool_name, placement.cheapest.name] - _used(planned)
        if idle <= filled:
            continue
        node = placement.cheapest.accelerator_count
        together = planned.zonal and planned.cost.nodes_floor > 1
        yield Finding(
            "CAP004",
            f"{idle - filled} of {planned.cost.nodes_floor * node} {planned.serving.accelerator.name} are paid for and "
            f"idle on {planned.cost.nodes_floor} × {placement.cheapest.name}",
            f"use {node} a replica, "
            + ("state availability: single so that replicas share a node, " if together else "")
            + "or add models to the pool",
            subject=planned.name,
            field=("accelerator",),
        )


def _used(planned: ModelPlan) -> int:
    """Accelerators in use at minimum replicas."""
    return planned.model.replicas.min * planned.serving.count


def preempted_batches(proposal: Proposal) -> Iterator[Finding]:
    """Requested batches that the KV cache cannot hold: the engine preempts sequences and recomputes them."""
    for planned in proposal.plans:
        wanted, serving = planned.model.engine.max_num_seqs, planned.serving
        if wanted is None:
            continue
        tokens = serving.ledger.kv_tokens(serving.max_model_len)
        least = min(LEAST_TOKENS_OF_A_SEQUENCE, serving.max_model_len)
        if tokens < wanted * least:
            yield Finding(
                "KV002",
                f"{wanted} sequences share {tokens} tokens of KV cache, {tokens // wanted} each",
                f"use maxNumSeqs {max(1, tokens // least)} or less, kvCacheDtype fp8, or more accelerators",
                subject=planned.name,
                field=("engine", "maxNumSeqs"),
            )
