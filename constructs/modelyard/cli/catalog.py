"""`modelyard catalog`: the dated facts that plans are based on."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from modelyard.checkpoints import Architecture, architectures
from modelyard.checkpoints.derivatives import format_in
from modelyard.cli.connections import ProfileOption
from modelyard.cli.prices import price_date, prices_origin, refresh
from modelyard.cli.printing import console, dollars, print_json, table
from modelyard.cli.workspace import EnvironmentsOption, Output, OutputOption, prices_of, readable_environment
from modelyard.engines import USUAL, releases
from modelyard.engines.differences import differences
from modelyard.findings import Finding
from modelyard.hardware import Prices, accelerators, instance_types
from modelyard.memory.weights import checkpoint_size, parameters
from modelyard.project import ENVIRONMENTS, region_prices
from modelyard.secret_values import shown

_HELP = """List what is known: accelerators, instances, models or engines; or refresh the prices of a region.

\b
  modelyard catalog accelerators
  modelyard catalog instances --env prod          prices of that environment's region
  modelyard catalog models --output json
  modelyard catalog engines --compare 0.32.0..0.33.0   what an upgrade of vLLM changes
  modelyard catalog refresh --env prod            today's prices, on demand and spot, from AWS

refresh needs pricing:GetProducts and ec2:DescribeSpotPriceHistory. It writes prices/REGION.json beside the environments, dated
and with its sources; every command then reads it. Commit it. Without it the prices shipped with Modelyard count.
"""

_REGION = "us-east-1"


class Topic(StrEnum):
    accelerators = "accelerators"
    instances = "instances"
    models = "models"
    engines = "engines"
    refresh = "refresh"


def register(app: typer.Typer) -> None:
    app.command(help=_HELP)(catalog)


def catalog(
    topic: Annotated[Topic, typer.Argument(help="What to list.")] = Topic.accelerators,
    env: Annotated[
        str | None,
        typer.Option("--env", "-e", metavar="NAME", help="Environment whose region's prices are meant."),
    ] = None,
    region: Annotated[
        str | None, typer.Option(metavar="REGION", help=f"Region of prices; default: --env's, or {_REGION}.")
    ] = None,
    profile: ProfileOption = None,
    environments: EnvironmentsOption = ENVIRONMENTS,
    compare: Annotated[
        str | None, typer.Option(metavar="OLD..NEW", help="With engines: what changed between two releases.")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Engine whose releases --compare means.")
    ] = USUAL,
    output: OutputOption = Output.table,
) -> int:
    if compare and topic is not Topic.engines:
        raise typer.BadParameter("--compare goes with engines")
    if topic is Topic.refresh and not (region or env):
        raise typer.BadParameter("refresh needs --region or --env")
    where = region or (readable_environment(environments, env).region if env else _REGION)
    if topic is Topic.refresh:
        known = region_prices(environments, where)  # a broken file is overwritten
        before = Prices(where) if isinstance(known, Finding) else known
        return refresh(environments, before, profile, output)
    prices = prices_of(environments, where)
    rows = _rows(topic, prices) if compare is None else _compared(engine, compare)
    if not rows:
        console(stderr=True).print("nothing changed")
        return 0
    if output is Output.json:
        print_json(
            "Catalog",
            topic=str(topic),
            **({"region": where, "prices": prices_origin(prices)} if topic is Topic.instances else {}),
            items=rows,
        )
        return 0
    columns = list(rows[0])
    numbers = [column for column in columns if any(isinstance(row[column], int | float) for row in rows)]
    out = console()
    title = f"{topic} in {where}, on demand, {price_date(prices)}" if topic is Topic.instances else str(topic)
    out.print(
        table(
            title,
            columns,
            ([_shown(column, row[column]) for column in columns] for row in rows),
            right=numbers,
        )
    )
    return 0


def _rows(topic: Topic, prices: Prices) -> list[dict[str, Any]]:
    if topic is Topic.accelerators:
        return _accelerators()
    if topic is Topic.instances:
        return _instances(prices)
    return _models() if topic is Topic.models else _engines()


def _shown(column: str, value: Any) -> str:
    if column == "usdPerHour":
        return dollars(value) if value is not None else "-"
    return "-" if value is None else f"{value:,.1f}" if isinstance(value, float) else str(value)


def _accelerators() -> list[dict[str, Any]]:
    return [
        {
            "name": a.name,
            "product": a.product,
            "memoryGiB": round(a.memory.in_gib, 1),
            "usableGiB": round(a.usable.in_gib, 2),
            "computeCapability": ".".join(map(str, a.compute_capability)) if a.compute_capability else None,
            "coresPerDevice": a.cores,
            "resource": a.resource,
            "instanceTypes": ", ".join(
                sorted(t.name for t in instance_types().values() if t.accelerator == a and not t.unsupported)
            ),
        }
        for a in accelerators().values()
    ]


def _instances(prices: Prices) -> list[dict[str, Any]]:
    return [
        {
            "type": t.name,
            "accelerator": t.accelerator.name,
            "count": t.accelerator_count,
            "vcpu": t.vcpu,
            "memoryGiB": round(t.memory.in_gib),
            "nvmeGB": t.local_nvme_gb,
            "efa": t.efa_interfaces,
            "usdPerHour": prices.of(t).usd_per_hour,
            "priceSource": prices.of(t).source,
            "note": t.unsupported or "",
        }
        for t in instance_types().values()
    ]


_BY_FILE = "gguf, by file"


def _stored(arch: Architecture) -> str:
    """How the checkpoint's weights are stored; a repository of GGUF files has several."""
    named = format_in(arch.model_id)
    if named and named.kind == "gguf":
        return _BY_FILE
    return arch.quantization.method if arch.quantization else "16 bit"


def _models() -> list[dict[str, Any]]:
    return [
        {
            "model": arch.model_id,
            "architecture": arch.architecture,
            "parametersB": round(parameters(arch) / 1e9, 2),
            "quantization": _stored(arch),
            "checkpointGiB": "" if _stored(arch) == _BY_FILE else round(checkpoint_size(arch).in_gib, 1),
            "maxLength": arch.max_position,
            "gated": "yes" if arch.gated else "",
        }
        for arch in map(architectures().__getitem__, architectures().repositories())
    ]


def _compared(engine: str, releases_named: str) -> list[dict[str, Any]]:
    known = {one.version: one for one in releases() if one.engine == engine}
    old, dots, new = releases_named.partition("..")
    if not dots or not {old, new} <= known.keys():
        raise typer.BadParameter(
            f"--compare takes OLD..NEW of {', '.join(known) or f'no release: {engine} is unknown'}, got {shown(releases_named)}"
        )
    return [vars(one) for one in differences(known[old], known[new])]


def _engines() -> list[dict[str, Any]]:
    return [
        {
            "engine": r.engine,
            "version": r.version,
            "image": r.image,
            "architectures": len(r.architectures),
            "flags": len(r.flags),
        }
        for r in releases()
    ]
