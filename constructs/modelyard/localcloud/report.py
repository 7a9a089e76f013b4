"""Tables of the inventory for a terminal, a pipe or a log."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from modelyard.localcloud import census
from modelyard.localcloud.endpoint import Clients, Endpoint
from modelyard.localcloud.inventory import InventoryRow, Presence, StackFailure, StackState
from modelyard.localcloud.journal import EmulationLevel, Entry

_NAME_WIDTH = 48
ALARMING = (Presence.MISSING, Presence.UNCHECKED)


def stacks(console: Console, states: Sequence[StackState], rows: Sequence[InventoryRow]) -> None:
    """One line per stack: its status, and the levels of its resources."""
    table = Table("stack", "status")
    columns = [
        presence
        for presence in Presence
        if presence not in ALARMING or any(row.presence is presence for row in rows)
    ]
    for presence in columns:
        table.add_column(presence.value, justify="right")
    counts = Counter((row.stack, row.presence) for row in rows)
    for state in states:
        numbers = [str(counts[state.name, presence]) for presence in columns]
        table.add_row(escape(state.name), state.status, *numbers)
    console.print(table)


def listings(console: Console, clients: Clients) -> None:
    """Everything that boto3 lists, whoever created it."""
    console.print("boto3 lists:", highlight=False)
    for listing in census.take(clients):
        if listing.names:
            names = ", ".join(_shortened(name) for name in listing.names)
            line = f"{len(listing.names):>4} {listing.kind:<26} {names}"
            console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")


def _shortened(name: str) -> str:
    """The last part of an ARN or a URL; other long names lose their middle, because counts are at the end."""
    if name.startswith(("arn:", "http://")):
        name = name.rsplit("/", 1)[-1].rsplit(":", 1)[-1]
    return name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 16]}…{name[-15:]}"


def recorded(console: Console, claims: Mapping[tuple[str, str], Entry]) -> None:
    """Resources that were only recorded, with their properties."""
    for (stack, logical_id), entry in claims.items():
        if entry.level is not EmulationLevel.RECORDED:
            continue
        facts = [
            f"{key} {value}" for key, value in entry.detail.items() if key != "note" and _is_short(value)
        ]
        note = f" ({entry.detail['note']})" if "note" in entry.detail else ""
        line = f"recorded{note}: {entry.type} {stack}/{logical_id}: {', '.join(facts)}"
        console.print(line.removesuffix(": "), markup=False, highlight=False, soft_wrap=True)


def _is_short(value: object) -> bool:
    """Excludes Helm values and manifests, which stay in the journal."""
    return isinstance(value, str | bool | int) and len(str(value)) <= 2 * _NAME_WIDTH


def resources(console: Console, rows: Sequence[InventoryRow]) -> None:
    """One untruncated line each, so that the output can be searched."""
    for row in rows:
        line = f"{row.presence.value:<9} {row.stack} {row.type} {row.logical_id} {row.physical_id}"
        style = "bold red" if row.presence in ALARMING else ""
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def failures(console: Console, failed: Sequence[StackFailure], states: Sequence[StackState]) -> None:
    """Why stacks failed, and the current status of every stack."""
    for failure in failed:
        console.print(f"{failure.stack} {failure.logical_id} ({failure.type})", style="bold", markup=False)
        console.print(f"  {failure.reason}", markup=False)
    for state in states:
        reason = f": {state.reason}" if state.reason else ""
        console.print(f"{state.name} is {state.status}{reason}", markup=False)


def next_steps(console: Console, endpoint: Endpoint, state: Path, rendered: Path, end: str) -> None:
    lines = [
        "It stays up. To look around with boto3 or the aws command, in this shell:",
        f"  export AWS_ENDPOINT_URL={endpoint.url} AWS_DEFAULT_REGION={endpoint.region} \\",
        f"    AWS_ACCESS_KEY_ID={endpoint.account} AWS_SECRET_ACCESS_KEY=local; unset AWS_PROFILE",
        f"  {Path(sys.executable)} -c \"import boto3; print(boto3.client('eks').list_clusters()['clusters'])\"",
        f"State, log and journal: {state}",
    ]
    if rendered.exists():
        lines.append(f"Rendered manifests: {rendered}")
    lines.append(f"Destroy, check and stop: {end}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
