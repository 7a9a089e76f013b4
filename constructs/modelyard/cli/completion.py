"""What a shell offers at TAB: names from the folders that the command line names, and from the tables.

Each function is called with what was typed before; everything is imported when asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from modelyard.project import ENVIRONMENTS, MODELS


def environment_names(context: typer.Context, incomplete: str) -> list[str]:
    from modelyard.spec.folders import environment_files

    return _starting(incomplete, environment_files(_folder(context, "environments", ENVIRONMENTS)))


def model_names(context: typer.Context, incomplete: str) -> list[str]:
    from modelyard.spec.loading import model_paths

    found, _ = model_paths(_folder(context, "models", MODELS))
    return _starting(incomplete, (path.stem for path, _ in found))


def models_and_files(context: typer.Context, incomplete: str) -> list[str]:
    return [*model_names(context, incomplete), *_paths(incomplete)]


def models_and_codes(context: typer.Context, incomplete: str) -> list[str]:
    from modelyard.findings import CHECKS

    return [*model_names(context, incomplete), *_starting(incomplete, CHECKS)]


def models_and_checkpoints(context: typer.Context, incomplete: str) -> list[str]:
    return [*model_names(context, incomplete), *checkpoints(incomplete), *_paths(incomplete)]


def checkpoints(incomplete: str) -> list[str]:
    from modelyard.checkpoints import architectures

    return _starting(incomplete, architectures().repositories())


def accelerator_names(incomplete: str) -> list[str]:
    from modelyard.hardware import accelerators

    return _starting(incomplete, accelerators())


def _folder(context: typer.Context, option: str, usual: Path) -> Path:
    return Path(context.params.get(option) or usual)


def _starting(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _paths(incomplete: str) -> Iterator[str]:
    """Files and folders, which a shell does not offer itself where a command offers names."""
    folder, _, start = incomplete.rpartition("/")
    try:
        entries = sorted(
            os.scandir(f"{folder}/" if folder or incomplete[:1] == "/" else "."), key=lambda e: e.name
        )
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(start) and not entry.name.startswith("."):
            yield f"{folder}/{entry.name}" if "/" in incomplete else entry.name
