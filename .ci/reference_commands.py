"""Pages about the command line: docs/reference/commands.md, and the manual page, from the commands
themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import typer

from modelyard.cli.exit_codes import EXIT_CODES
from modelyard.cli.main import app

_HEAD = """# Command reference

Written by `.ci/reference.py` from the commands. `modelyard COMMAND --help` shows the same, `man modelyard` too.

Data goes to standard output, findings and progress to standard error. A command that prints a table also prints
[JSON](output.md) with `--output json`. `NO_COLOR`, `COLUMNS` and `--no-color` are respected; in a pipe there are no colours, and
tables are as wide as their text.

## Exit codes

| | |
|---|---|
"""


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Name as typed, command and context, of every command and its subcommands."""
    root = typer.main.get_command(app)
    yield from _below(root, typer.Context(root, info_name="modelyard"), "modelyard")


def _below(group: Any, context: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        inner = typer.Context(command, info_name=each, parent=context)
        full = f"{name} {each}"
        if hasattr(command, "list_commands"):
            yield full, command, inner
            yield from _below(command, inner, full)
        else:
            yield full, command, inner


def page() -> str:
    text = [_HEAD + "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())]
    for name, command, context in commands():
        depth = "##" if name.count(" ") == 1 else "###"
        text.append(f"{depth} {name}\n")
        text.append("\n\n".join(_markdown(part) for part in _paragraphs(command.help)) + "\n")
        rows = [*_rows(command, context)]
        if rows:
            lines = "".join(f"| {_cell(names)} | {_cell(about)} |\n" for names, about in rows)
            text.append(f"| | |\n|---|---|\n{lines}")
    return "\n".join(text)


def _paragraphs(text: str | None) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", (text or "").strip()) if part.strip()]


def _markdown(paragraph: str) -> str:
    """`\\b` begins a paragraph that keeps its lines: examples."""
    if not paragraph.startswith("\b"):
        return " ".join(paragraph.split())
    lines = [line.removeprefix("  ") for line in paragraph.removeprefix("\b").strip("\n").splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```"


def _rows(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Each argument and option as typed, with its explanation."""
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        names, about = parameter.get_help_record(context) or (parameter.name.upper(), parameter.help or "")
        if parameter.param_type_name == "argument":
            names = parameter.metavar or names
        yield " ".join(names.split()), " ".join(about.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def manual() -> str:
    """The page `modelyard.1`, in the man macros (groff_man(7))."""
    lines = [
        f'.TH MODELYARD 1 "" "modelyard {version("modelyard")}" "User Commands"',
        ".SH NAME",
        "modelyard \\- LLM inference on Amazon EKS as code",
        ".SH SYNOPSIS",
        ".B modelyard",
        "[\\fB\\-\\-no\\-color\\fR] \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]",
        ".SH DESCRIPTION",
        _roff(
            "Three lines of YAML to a planned, priced and deployed endpoint. Model files are in models/, environments in "
            "environments/."
        ),
        ".SH COMMANDS",
    ]
    for name, command, context in commands():
        lines += [f".SS {_roff(name.removeprefix('modelyard '))}"]
        for part in _paragraphs(command.help):
            if part.startswith("\b"):
                shown = part.removeprefix("\b").strip("\n").splitlines()
                lines += [".PP", ".nf", *(_roff(line) for line in shown), ".fi"]
            else:
                lines += [".PP", _roff(" ".join(part.split()))]
        for names, about in _rows(command, context):
            lines += [".TP", f".B {_roff(names)}", _roff(about)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _roff(meaning)]
    lines += [
        ".SH ENVIRONMENT",
        *(".TP", ".B MODELYARD_ENV", "The environment where \\-\\-env is not given."),
        *(".TP", ".B MODELYARD_CRDS", "The folder of definitions where \\-\\-crds is not given."),
        *(".TP", ".B MODELYARD_API_KEY", "The key of the endpoint that smoke and bench ask."),
        *(".TP", ".B NO_COLOR, COLUMNS", "As in other programs."),
        *(".TP", ".B HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE", "As in huggingface_hub, for \\-\\-hub."),
    ]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Text that no macro reads: a period or quote at a line's start begins one."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
