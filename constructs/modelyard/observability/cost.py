"""Cost of models and pools from the plan's dated prices: exporters of cloud bills cannot attribute GPU
shares."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.hardware import accelerator_of
from modelyard.observability.rule import Recording, RuleGroup
from modelyard.observability.selection import Selection
from modelyard.planning import ModelPlan, Plan


def model_cost(plan: ModelPlan, namespace: str) -> RuleGroup | None:
    """Node price per accelerator, times the accelerators of the model's pods; None without a price."""
    price = plan.cost.node_price
    if price is None:
        return None
    chosen = Selection.of(plan, namespace)
    instance = plan.placement.cheapest
    cost = chosen.series("model:cost:usd_per_hour")
    tokens = chosen.series("model:generated_tokens:rate1h")
    generated = chosen.series("model:generated_tokens:rate5m")
    rules = (
        Recording(
            "model:accelerator_price:usd_per_hour",
            f"vector({price / instance.accelerator_count:.6g})",
            labels={**chosen.labels, "instance_type": instance.name, "nodepool": plan.placement.pool_name},
        ),
        Recording(
            "model:cost:usd_per_hour",
            f"{chosen.series('model:accelerators:sum')} * on (model, namespace) "
            f"{chosen.series('model:accelerator_price:usd_per_hour')}",
            labels={**chosen.labels, "nodepool": plan.placement.pool_name},
        ),
        Recording("model:generated_tokens:rate1h", f"avg_over_time({generated}[1h])", labels=chosen.labels),
        Recording(
            "model:cost:usd_per_million_tokens",
            f"1e6 * {cost} / on (model, namespace) (3600 * {tokens} > 0)",
            labels=chosen.labels,
        ),
    )
    return RuleGroup(f"{plan.name}.cost", rules)


def pool_recordings(plan: Plan) -> RuleGroup:
    """Accelerators, limit and cost of each pool."""
    rules: list[Recording] = []
    for name, pool in plan.environment.pools.items():
        resource = accelerator_of(pool.accelerator).resource
        labels = {"nodepool": name}
        matchers = f'nodepool="{name}", resource_type="{resource}"'
        rules += [
            Recording(
                "pool:accelerators:sum", f"sum(karpenter_nodepools_usage{{{matchers}}})", labels=labels
            ),
            Recording(
                "pool:accelerators:limit", f"max(karpenter_nodepools_limit{{{matchers}}})", labels=labels
            ),
            *_pool_prices(plan, name),
        ]
    return RuleGroup("modelyard.pools", tuple(rules))


def _pool_prices(plan: Plan, pool: str) -> Iterator[Recording]:
    """A price for each instance type in use; the pool's cost uses the highest."""
    prices = {
        (m.placement.cheapest.name, m.cost.node_price / m.placement.cheapest.accelerator_count)
        for m in plan.models
        if m.placement.pool_name == pool and m.cost.node_price is not None
    }
    for instance_type, price in sorted(prices):
        yield Recording(
            "pool:accelerator_price:usd_per_hour",
            f"vector({price:.6g})",
            labels={"nodepool": pool, "instance_type": instance_type},
        )
    if prices:
        yield Recording(
            "pool:cost:usd_per_hour",
            f'pool:accelerators:sum{{nodepool="{pool}"}} * on (nodepool) '
            f'max by (nodepool) (pool:accelerator_price:usd_per_hour{{nodepool="{pool}"}})',
            labels={"nodepool": pool},
        )
