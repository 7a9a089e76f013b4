"""The commands by name. A command's module is imported only when it runs, so that none slows the others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from modelyard.reading.words import closest


def show_help(context: typer.Context) -> None:
    """What a group does without a command: it lists the ones it has."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


COMMANDS = {
    "validate": "Check models and environments: syntax, memory, parallelism, flags, placement, quota, secrets.",
    "plan": "Show what an environment runs: accelerators, memory, rollout, start-up, quota and cost.",
    "checklist": "Judge every model by the production checklist: memory, instance, quantization, length, parallelism, shm,",
    "render": "Write the Kubernetes objects of an environment, one object a file, the same bytes each time.",
    "explain": "Explain a model (memory ledger, placement, rollout, start-up, cost, throughput) or a finding's code.",
    "estimate": "Estimate the memory of one GPU: weights, activation, overhead, and the KV cache that is left.",
    "size": "List the accelerators that can hold a model, cheapest first, with the memory of one GPU drawn.",
    "model": "Record what is known of a model's checkpoint, so that everything afterwards is offline and reviewed.",
    "catalog": "List what is known: accelerators, instances, models or engines; or refresh the prices of a region.",
    "schema": "Print or write JSON Schema for model and environment files, pipeline.yaml and modelyard.yaml.",
    "endpoint": "Show how to call a model: addresses, names, key, and a first request for curl and for Python.",
    "smoke": "Ask a running endpoint for everything that its model's file promises, with the OpenAI client.",
    "bench": "Put load on a running endpoint and measure throughput, TTFT, ITL and E2E by concurrency.",
    "doctor": "Ask the environment's account for what a deploy relies on, and change nothing: credentials, quotas, zones",
    "verify": "Look from outside whether an environment stands as it was deployed.",
    "publish": "Render an environment and put what changed into the bucket that Flux reads: a change of models or pools without",
    "upgrade-plan": "Say what is in the way of a Kubernetes upgrade, and what happens in which order. Nothing is changed.",
    "destroy-plan": "Show what goes when an environment is taken down, in order: objects of the cluster, "
    "stacks, and what is left over.",
    "drain": "Empty an environment's cluster in the order that leaves nothing behind: delivery is suspended, models end their",
    "sweep": "List what a deleted cluster left in the account, by the tags that Karpenter, the VPC CNI "
    "and the controllers of load",
    "secrets": "Values of the secrets that an environment names, in AWS Secrets Manager. A value is never shown.",
}
"""Name to the first line of its help; modules are named like their commands, with underscores."""


class Commands(TyperGroup):
    """All commands; listing their names imports none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            found = typer.Typer(rich_markup_mode=None)
            import_module(f"modelyard.cli.{cmd_name.replace('-', '_')}").register(found)
            self.commands[cmd_name] = typer.main.get_group(found).commands[cmd_name]
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual; a message about an unknown command suggests the nearest, which must be there for it."""
        for near in closest(args[0], COMMANDS):
            self.get_command(ctx, near)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, TyperCommand(name, help=summary).get_short_help_str(limit))
                    for name, summary in COMMANDS.items()
                ]
            )
