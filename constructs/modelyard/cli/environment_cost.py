"""Cost of an environment besides its models, as a line of the plan, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modelyard.cli.printing import console, dollars, table
from modelyard.hardware import platform_facts
from modelyard.planning.fixed_cost import EnvironmentCost


def environment_cost_json(cost: EnvironmentCost) -> dict[str, Any]:
    """US dollars a month, line by line, and the unit prices of what depends on use."""
    return {
        "usdPerMonth": round(cost.usd_per_month, 2),
        "region": cost.region,
        "date": cost.day,
        "lines": [
            {
                "name": line.name,
                "count": line.count,
                "detail": line.detail,
                "usd": line.usd,
                "per": line.per,
                "usdPerMonth": None if line.usd_per_month is None else round(line.usd_per_month, 2),
            }
            for line in cost.lines
        ],
        "unpriced": list(cost.unpriced),
        "dependsOnUse": [{"name": each.name, "unit": each.unit, "usd": each.usd} for each in cost.by_use],
        "endpointSavings": [
            {"endpoints": each.endpoints, "usdPerMonth": round(each.usd_per_month, 2)}
            for each in cost.savings
        ],
    }


def environment_cost_line(environment: str, cost: EnvironmentCost) -> str:
    """The sum, and where its lines are."""
    where = f"`modelyard plan --env {environment} --costs` has every line"
    if not cost.known:
        return f"Besides the models: no prices of {cost.region} are known; {where}."
    missing = f", without {', '.join(cost.unpriced)} (no price)" if cost.unpriced else ""
    return f"Besides the models: {dollars(cost.usd_per_month)} a month{missing}; {where}."


def print_environment_cost(environment: str, cost: EnvironmentCost) -> None:
    """Every line, what depends on use, and what other endpoints save."""
    out = console()
    out.print(
        table(
            f"{environment}, besides its models: {dollars(cost.usd_per_month)} a month",
            ("WHAT", "COUNT", "EACH", "$/MONTH"),
            (
                (
                    line.name,
                    f"{line.count:g}",
                    _price(line.usd, line.per),
                    "-" if line.usd_per_month is None else dollars(line.usd_per_month),
                )
                for line in cost.lines
            ),
            right=("COUNT", "$/MONTH"),
        )
    )
    out.print("Depends on use, in no sum:")
    for each in cost.by_use:
        out.print(f"  {each.name}: {_price(each.usd, each.unit)}", soft_wrap=True)
    for note in _notes(cost):
        out.print(note, soft_wrap=True)


def _notes(cost: EnvironmentCost) -> Iterable[str]:
    endpoints = next((line.detail for line in cost.lines if line.name == "interface endpoints"), None)
    if endpoints:
        yield f"Interface endpoints: {endpoints}."
    for saving in cost.savings:
        yield f"network.endpoints: {saving.endpoints} saves {dollars(saving.usd_per_month)} a month."
    for line in cost.lines:
        if line.usd is None:
            yield f"Not in the sum, no price known in {cost.region}: {line.name} ({line.detail})."
    yield (
        f"Prices of {cost.region} on demand, read on {cost.day}, {platform_facts().hours_per_month} hours a month; "
        "without discounts, taxes and free tiers."
    )


def _price(usd: float | None, unit: str) -> str:
    return "not known" if usd is None else f"${usd:g} / {unit}"
