"""`modelyard publish`: upload the rendered tree to the bucket that Flux reads, without a deploy."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from modelyard.charts import project_hook
from modelyard.cli.connections import ProfileOption, account_of
from modelyard.cli.printing import console, count, print_findings, print_json, print_left_alone
from modelyard.cli.workspace import (
    CommandError,
    EnvironmentsOption,
    EnvOption,
    ModelsOption,
    Output,
    OutputOption,
)
from modelyard.live.api.answers import Unanswered
from modelyard.live.api.aws import Account
from modelyard.live.delivery.comparison import Changes, compare, delivery_bucket, listed
from modelyard.live.delivery.publish import AnotherPublication, ForeignKeys, publish, stale
from modelyard.objects.composition import RenderError
from modelyard.objects.rendering import render
from modelyard.planning import Plan
from modelyard.project import ENVIRONMENTS, MODELS, Project, load_project
from modelyard.writing import tree_files

_HELP = """Render an environment and put what changed into the bucket that Flux reads: a change of models or pools without
CloudFormation. Flux waits until the publication is whole, files of others are left alone, a second run changes nothing.

\b
  modelyard publish --env dev --dry-run
  modelyard publish --env prod
  modelyard publish --env prod --tree dist     what was rendered and reviewed before; refused where it is not as fresh

Roles, networks, caches and secrets are CloudFormation's: `cdk diff` says whether a change needs a deploy. A publication is
not undone by deploying the commit before, for CloudFormation sees no change in that: publish that commit instead. The exit code
is 0 when the bucket is as the tree, 1 where there are errors, 64 for misuse.
"""


def register(app: typer.Typer) -> None:
    app.command("publish", help=_HELP)(publish_tree)


def publish_tree(
    env: EnvOption = "local",
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Publish DIR/ENV as it is; default: render anew into dist/ENV.",
            file_okay=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Go on although another publication has not ended: it no longer runs."
        ),
    ] = False,
    models: ModelsOption = MODELS,
    environments: EnvironmentsOption = ENVIRONMENTS,
    profile: ProfileOption = None,
    output: OutputOption = Output.table,
) -> int:
    project = load_project(env, models, environments)
    planned = project.plan()
    if planned is None or not planned.deployable:
        print_findings(planned.findings if planned else project.findings)
        return 1
    environment = planned.environment
    if environment.delivery != "flux":
        raise CommandError(
            f"environment {environment.name} has `delivery: {environment.delivery}`: there is no bucket to publish to"
        )
    account = account_of(environment, profile, "publish")
    files = _rendered(project, planned, env, tree, kept=not dry_run)
    try:
        bucket = delivery_bucket(account.ask, environment.name)
        if bucket is None:
            raise CommandError(
                f"stack Delivery of {environment.name} is not deployed: cdk deploy --all -c env={env}"
            )
        changes = compare(account.ask, listed(account.ask, bucket), files)
    except Unanswered as why:
        raise CommandError(f"nothing was published: {why}") from None
    if not dry_run:
        changes = _carry_out(account, changes, files, take_over=take_over)
    if output is Output.json:
        print_json(
            "Publication",
            environment=environment.name,
            bucket=changes.bucket,
            dryRun=dry_run,
            uploads=list(changes.uploads),
            deletions=list(changes.deletions),
            foreign=list(changes.foreign),
            unchanged=changes.unchanged,
        )
    else:
        _print(changes, dry_run)
    return 0


def _rendered(
    project: Project, planned: Plan, env: str, tree: Path | None, *, kept: bool
) -> dict[str, bytes]:
    """Contents to publish, by bucket key; `kept`: whether to write the rendering to `dist`."""
    hook = project_hook()
    with TemporaryDirectory() as scratch:
        fresh = Path("dist" if tree is None and kept else scratch) / env
        try:
            render(planned, fresh, hook=hook)
        except RenderError as error:
            print_findings(project.located(error.findings))
            raise CommandError("nothing was published: the objects break rules") from None
        files = tree_files(fresh)
    if tree is None:
        return files
    given = tree / env
    if not given.is_dir():
        raise CommandError(f"there is no {given}: modelyard render --env {env} --out {tree}")
    if differing := stale(given, files):
        raise CommandError(
            f"{given} is not what the files render now: {', '.join(differing[:5])}"
            f"{f' and {len(differing) - 5} more' if len(differing) > 5 else ''}; "
            f"modelyard render --env {env} --out {tree}"
        )
    return files


def _carry_out(account: Account, seen: Changes, files: dict[str, bytes], *, take_over: bool) -> Changes:
    try:
        return publish(account, seen, files, take_over=take_over)
    except ForeignKeys as which:
        raise CommandError(f"nothing was published: modelyard did not write {which}; move it away") from None
    except AnotherPublication as other:
        raise CommandError(
            f"nothing was published: another publication has not ended, {other}; wait for it, or where it no longer runs: "
            "--take-over"
        ) from None
    except KeyboardInterrupt:
        console(stderr=True).print(
            "interrupted: Flux applies nothing until the publication is run again", soft_wrap=True
        )
        raise
    except Unanswered as why:
        raise CommandError(
            f"published in part, and Flux applies nothing of it: {why}; run it again, it goes on where it stopped"
        ) from None


def _print(changes: Changes, dry_run: bool) -> None:
    out = console()
    for key in changes.uploads:
        out.print(f"  + {key}", soft_wrap=True, markup=False)
    for key in changes.deletions:
        out.print(f"  - {key}", soft_wrap=True, markup=False)
    if changes.interrupted and dry_run:
        out.print(
            "  a publication has begun and has not ended: Flux applies nothing until one has", soft_wrap=True
        )
    if changes.conflicts:
        out.print(
            f"  not written by modelyard, and in the way: {', '.join(changes.conflicts)}", soft_wrap=True
        )
    if changes.foreign:
        print_left_alone(changes.foreign)
    said = "would be uploaded" if dry_run else "uploaded"
    out.print(
        f"{changes.bucket}: {count(len(changes.uploads), 'file')} {said}, {len(changes.deletions)} deleted, "
        f"{changes.unchanged} unchanged",
        soft_wrap=True,
        markup=False,
    )
    if not dry_run and (changes.uploads or changes.deletions):
        out.print(
            "Flux reads it within a minute: kubectl -n flux-system get kustomizations --watch",
            soft_wrap=True,
            markup=False,
        )
