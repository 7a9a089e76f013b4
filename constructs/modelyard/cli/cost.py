"""Cost and throughput as text and as JSON: cost by capacity type, stranded cost, throughput, price of a
token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modelyard.cli.prices import price_date, prices_origin
from modelyard.cli.printing import count, dollars
from modelyard.memory.throughput import Throughput, token_cost
from modelyard.planning import ModelPlan, Plan
from modelyard.planning.cost import CapacityCost


def plan_cost_json(planned: Plan) -> dict[str, Any]:
    """US dollars per hour of the environment."""
    return {
        "floorUsdPerHour": round(planned.floor, 4),
        "floorIsAtMost": planned.floor_at_most,
        "ceilingUsdPerHour": round(planned.ceiling, 4),
        "strandedUsdPerHour": round(planned.stranded, 4),
        "unpriced": list(planned.unpriced),
        "prices": prices_origin(planned.prices),
        "byCapacity": _capacity_json(planned.by_capacity),
        "pools": [
            {
                "pool": pool.pool,
                "instanceType": pool.instance_type,
                "nodes": pool.nodes,
                "accelerators": pool.accelerators,
                "idleAccelerators": pool.idle_accelerators,
                "floorUsdPerHour": pool.floor,
                "strandedUsdPerHour": pool.stranded,
            }
            for pool in planned.pools
        ],
    }


def model_cost_json(model: ModelPlan) -> dict[str, Any]:
    """US dollars per hour of one model on its own nodes."""
    cost = model.cost
    return {
        "floorUsdPerHour": cost.floor,
        "floorIsAtMost": cost.floor_at_most,
        "ceilingUsdPerHour": cost.ceiling,
        "nodesAtFloor": cost.nodes_floor,
        "nodesAtCeiling": cost.nodes_ceiling,
        "idleAccelerators": cost.idle_accelerators,
        "strandedUsdPerHour": cost.stranded,
        "usdPerReplicaHour": cost.usd_per_replica,
        "byCapacity": _capacity_json(cost.by_capacity),
    }


def _capacity_json(costs: Iterable[CapacityCost]) -> dict[str, Any]:
    return {
        cost.capacity: {
            "floorUsdPerHour": cost.floor,
            "ceilingUsdPerHour": cost.ceiling,
            "committed": cost.committed,
            "basis": cost.basis,
        }
        for cost in costs
    }


def throughput_json(model: ModelPlan, throughput: Throughput) -> dict[str, Any]:
    """Tokens per second of one replica, and US dollars per million tokens."""
    price = token_cost(throughput, model.cost.usd_per_replica)
    return {
        "source": throughput.source,
        "isUpperBound": throughput.is_upper_bound,
        "statement": throughput.statement,
        "workload": {
            "inputTokens": throughput.workload.input_tokens,
            "outputTokens": throughput.workload.output_tokens,
        },
        "concurrentRequests": throughput.batch,
        "outputTokensPerSecond": round(throughput.output_per_second, 1),
        "totalTokensPerSecond": round(throughput.total_per_second, 1),
        "decodeTokensPerSecond": _rounded(throughput.decode_per_second),
        "prefillTokensPerSecond": _rounded(throughput.prefill_per_second),
        "limitedBy": throughput.limited_by,
        "usdPerMillionOutputTokens": price and round(price.output, 4),
        "usdPerMillionTokens": price and round(price.blended, 4),
    }


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 1)


def plan_cost_lines(planned: Plan, hours_per_month: int) -> Iterable[str]:
    """Cost of the environment in sentences."""
    floor, ceiling = planned.floor, planned.ceiling
    at_most = "at most " if planned.floor_at_most else ""
    yield (
        f"Cost: {at_most}{dollars(floor)} to {dollars(ceiling)} an hour, "
        f"{at_most}{dollars(floor * hours_per_month)} to {dollars(ceiling * hours_per_month)} a month."
        + (f" Not in the sum, no public price: {', '.join(planned.unpriced)}." if planned.unpriced else "")
    )
    yield f"On demand: {price_date(planned.prices)}; `modelyard catalog refresh` asks for today's."
    if planned.floor_at_most:
        yield (
            "The floor may be lower: nobody publishes what spot or a Capacity Block will cost; state what you pay under "
            "the pool's prices."
        )
    if any(cost.capacity != "on-demand" for cost in planned.by_capacity):
        for cost in planned.by_capacity:
            yield f"  {cost.capacity}, for the models whose pool allows it: {_span(cost)}; {cost.basis}."
    idle = [pool for pool in planned.pools if pool.idle_accelerators]
    if idle:
        where = ", ".join(
            f"{pool.idle_accelerators} of {pool.accelerators} in pool {pool.pool}"
            + (" (no price)" if pool.stranded is None else "")
            for pool in idle
        )
        yield f"Stranded: {dollars(planned.stranded)} an hour for accelerators without work at the floor: {where}."


def cost_facts(model: ModelPlan) -> Iterable[tuple[str, str]]:
    """Cost of one model, by name and sentence."""
    cost = model.cost
    nodes = count(cost.nodes_floor, "node")
    price = f"{dollars(cost.floor)} an hour"
    if cost.nodes_floor != cost.nodes_ceiling or cost.floor != cost.ceiling:
        if cost.nodes_floor != cost.nodes_ceiling:
            nodes = f"{cost.nodes_floor} to {count(cost.nodes_ceiling, 'node')}"
        price = f"{dollars(cost.floor)} to {dollars(cost.ceiling)} an hour"
    if cost.floor is None:
        price = "no public price; state what you pay under the pool's prices"
    yield "cost", f"{'at most ' if cost.floor_at_most else ''}{price}, on {nodes}"
    for offer in cost.by_capacity:
        yield f"- {offer.capacity}", f"{_span(offer)}; {offer.basis}"
    total = cost.nodes_floor * model.placement.cheapest.accelerator_count
    yield (
        "stranded",
        f"{dollars(cost.stranded)} an hour: {cost.idle_accelerators} of {count(total, 'accelerator')} idle at the floor"
        + ("; other models of the pool may use them" if cost.idle_accelerators else ""),
    )


def _span(cost: CapacityCost) -> str:
    if cost.ceiling is None:
        return "unknown" if cost.floor is None else f"{dollars(cost.floor)} an hour or more"
    if cost.floor is None:
        return f"at most {dollars(cost.ceiling)} an hour"
    if cost.floor == cost.ceiling:
        return f"{dollars(cost.floor)} an hour"
    return f"{dollars(cost.floor)} to {dollars(cost.ceiling)} an hour"


def throughput_facts(model: ModelPlan, throughput: Throughput) -> Iterable[tuple[str, str]]:
    """Throughput of one replica and the price of its tokens, by name and sentence."""
    work = throughput.workload
    kind = "estimate, roofline bound" if throughput.is_upper_bound else "estimate, AIConfigurator"
    most = "at most " if throughput.is_upper_bound else "about "
    limit = f", limited by {throughput.limited_by}" if throughput.limited_by else ""
    speed = f"{most}{throughput.output_per_second:,.0f} output tokens/s a replica ({kind}{limit})"
    at = f"{throughput.batch} requests at once of {work.input_tokens} tokens in and {work.output_tokens} out"
    answers = model.model.task == "generate"
    if not answers:  # one answer is counted as one token
        speed = f"{most}{throughput.output_per_second:,.0f} requests/s a replica ({kind}{limit})"
        at = f"{throughput.batch} requests at once of {work.input_tokens} tokens"
    yield "throughput", f"{speed}, at {at}"
    yield "", throughput.statement
    price = token_cost(throughput, model.cost.usd_per_replica)
    if price is None:
        yield "tokens", "no price"
        return
    least = "at least " if throughput.is_upper_bound and not model.cost.floor_at_most else "about "
    said = f"${price.output:,.3f} per 1M output tokens, ${price.blended:,.3f} per 1M tokens in and out"
    if not answers:
        said = f"${price.input:,.3f} per 1M tokens"
    yield "tokens", f"{least}{said}, at full load"
