"""`python -m modelyard.localcloud up`: the whole app on an AWS that lives on this machine, and `down`
again."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from modelyard.localcloud import inventory, journal, lifecycle, report
from modelyard.localcloud.buckets import empty_buckets
from modelyard.localcloud.deployment import AssemblyRefused, Deployment, ToolMissing, target_of
from modelyard.localcloud.endpoint import Clients, Endpoint
from modelyard.localcloud.entries import UnreadableJournal
from modelyard.localcloud.entries import read as entries_of
from modelyard.localcloud.inventory import InventoryRow, Presence
from modelyard.writing import NotWritten

app = typer.Typer(
    help="Deploy to an embedded AWS on 127.0.0.1: no account, no Docker.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
console = Console()

_Environment = Annotated[
    str, typer.Option("--env", help="Environment to deploy, given to the app as context.")
]
_State = Annotated[
    Path | None, typer.Option("--state", help="Folder of the embedded AWS. Default: .modelyard/ENV.")
]


@app.callback()
def _needs_the_extra() -> None:
    """Deploy to an embedded AWS on 127.0.0.1: no account, no Docker."""
    if find_spec("boto3") is None:
        _fail("boto3 is not installed; the embedded AWS needs the extra modelyard[local]")


@app.command()
def up(
    env: _Environment = "local",
    app: Annotated[str | None, typer.Option(help="Command of the CDK app. Default: cdk.json.")] = None,
    account: Annotated[
        str, typer.Option(help="For stacks that name no account.", metavar="12 DIGITS")
    ] = Endpoint.account,
    region: Annotated[str, typer.Option(help="For stacks that name no region.")] = Endpoint.region,
    state: _State = None,
    project: Annotated[Path, typer.Option(help="Folder with node_modules and .venv-localcloud.")] = Path(),
) -> None:
    """Start, bootstrap when needed, deploy all stacks, and say what boto3 finds."""
    folder = _folder(state, env)
    project = project.resolve()
    was_running = lifecycle.running(folder) is not None
    try:
        endpoint = lifecycle.start(folder, python=lifecycle.find_python(project))
        endpoint = replace(endpoint, account=account, region=region)
        console.print(f"embedded AWS at {endpoint.url}, process {endpoint.pid}")
        deployment = Deployment(
            endpoint=endpoint, project=project, state=folder, app=app, context={"env": env}
        )
        if deployment.synth() != 0:
            if not was_running:
                lifecycle.stop(folder)
            _fail("the app does not synthesize; nothing was deployed")
        deployment = replace(deployment, endpoint=_at_target(deployment))
        clients = Clients(deployment.endpoint)
        if not inventory.is_bootstrapped(clients) and deployment.bootstrap() != 0:
            _fail(f"cdk bootstrap failed; see {folder / lifecycle.LOG}")
        if deployment.deploy() != 0:
            report.failures(console, inventory.failures(clients), inventory.stacks(clients))
            _fail(f"not deployed; it stays up for another `up`, or a `down`; log: {folder / lifecycle.LOG}")
        missing = _report(clients, folder)
    except KeyboardInterrupt:
        if not was_running:
            lifecycle.stop(folder)
        console.print(
            "interrupted; " + ("the embedded AWS stays up" if was_running else "everything stopped")
        )
        raise typer.Exit(130) from None
    if missing:
        _fail(f"{len(missing)} resources are in no listing, although CloudFormation reports them")
    end = (
        "make down"
        if (env, state) == ("local", None)
        else f"python -m modelyard.localcloud down --state {folder}"
    )
    report.next_steps(console, deployment.endpoint, folder, project / "dist" / env, end)


@app.command()
def diff(
    env: _Environment = "local",
    app: Annotated[str | None, typer.Option(help="Command of the CDK app. Default: cdk.json.")] = None,
    state: _State = None,
    project: Annotated[Path, typer.Option(help="Folder with node_modules.")] = Path(),
) -> None:
    """Say what `up` would change now; nothing is changed."""
    folder = _folder(state, env)
    endpoint = lifecycle.running(folder)
    if endpoint is None:
        _fail(f"nothing is running in {folder}; `up` first")
        return
    with tempfile.TemporaryDirectory() as scratch:
        # `down` destroys what was deployed.
        deployment = Deployment(
            endpoint=endpoint,
            project=project.resolve(),
            state=Path(scratch),
            app=app,
            context={"env": env},
        )
        if deployment.synth() != 0:
            _fail("the app does not synthesize")
        if replace(deployment, endpoint=_at_target(deployment)).diff() != 0:
            _fail("cdk diff failed")


@app.command()
def down(
    env: _Environment = "local",
    state: _State = None,
    project: Annotated[Path, typer.Option(help="Folder with node_modules.")] = Path(),
    discard: Annotated[bool, typer.Option(help="Do not destroy the stacks first.")] = False,
) -> None:
    """Destroy all stacks, check that nothing is left, stop the embedded AWS and delete its folder."""
    folder = _folder(state, env)
    endpoint = None if discard else lifecycle.running(folder)
    if endpoint is not None:
        deployment = Deployment(endpoint=endpoint, project=project.resolve(), state=folder)
        if (deployment.assembly / "manifest.json").exists():
            _destroy(replace(deployment, endpoint=_at_target(deployment)))
    if lifecycle.stop(folder) or endpoint is not None:
        left = "deleted" if not folder.exists() else "kept: it holds files of others"
        console.print(f"embedded AWS stopped, {folder} {left}", markup=False)
    else:
        console.print(f"nothing is running in {folder}")


@app.command()
def status(
    env: _Environment = "local",
    state: _State = None,
    resources: Annotated[bool, typer.Option(help="One line for every resource.")] = False,
) -> None:
    """Say what boto3 finds now."""
    folder = _folder(state, env)
    endpoint = lifecycle.running(folder)
    if endpoint is None:
        console.print(f"nothing is running in {folder}")
        return
    deployment = Deployment(endpoint=endpoint, project=Path(), state=folder)
    if (deployment.assembly / "manifest.json").exists():
        endpoint = _at_target(deployment)
    console.print(f"embedded AWS at {endpoint.url}, process {endpoint.pid}, state in {folder}")
    if _report(Clients(endpoint), folder, resources=resources):
        raise typer.Exit(1)


def _folder(state: Path | None, env: str) -> Path:
    return (state or Path(lifecycle.HOME) / env).resolve()


def _at_target(deployment: Deployment) -> Endpoint:
    """Account and region from the app's stacks override the options."""
    target = target_of(deployment.assembly)
    if target is None:
        return deployment.endpoint
    return replace(deployment.endpoint, account=target[0], region=target[1])


def _report(clients: Clients, folder: Path, *, resources: bool = False) -> list[InventoryRow]:
    entries = entries_of(folder / journal.FILE_NAME)
    rows = inventory.take(clients, entries)
    report.stacks(console, inventory.stacks(clients), rows)
    report.listings(console, clients)
    report.recorded(console, journal.current(entries))
    report.resources(console, rows if resources else [row for row in rows if row.presence in report.ALARMING])
    return [row for row in rows if row.presence is Presence.MISSING]


def _destroy(deployment: Deployment) -> None:
    clients = Clients(deployment.endpoint)
    entries = entries_of(deployment.state / journal.FILE_NAME)
    rows = inventory.take(clients, entries)
    empty_buckets(clients, rows)  # docs/how-to/deploy-to-aws.md tells people to do this
    if deployment.destroy() != 0:
        report.failures(console, inventory.failures(clients), inventory.stacks(clients))
        _fail("not destroyed; the embedded AWS is still up; `down --discard` throws it away as it is")
    standing = inventory.stacks(clients)
    left = inventory.still_there(clients, rows, entries)
    if standing or left:
        report.resources(console, left)
        _fail(f"{len(standing)} stacks and {len(left)} resources are left; the embedded AWS is still up")
    kept = sum(row.retained for row in rows)
    retained = f"; {kept} with DeletionPolicy Retain go with the embedded AWS" if kept else ""
    console.print(f"destroyed; of {len(rows)} resources boto3 finds none{retained}")


def _fail(message: str) -> None:
    console.print(message, style="bold red", soft_wrap=True, markup=False)
    raise typer.Exit(1)


def main() -> None:
    try:
        app()
    except (ToolMissing, AssemblyRefused, NotWritten, UnreadableJournal, lifecycle.ServerFailed) as error:
        console.print(f"{error}", style="bold red", soft_wrap=True, markup=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
