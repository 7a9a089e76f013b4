"""docs/reference/output.md: the keys of the JSON documents, from documents that the commands print."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from modelyard.cli.main import main

_CODE = Path("constructs/modelyard/cli")
_SERVING = (
    "--models",
    "tests/fixtures/serving/models",
    "--environments",
    "tests/fixtures/serving/environments",
)
_RUNS: dict[str, Sequence[Sequence[str]]] = {
    "validate": (["tests/fixtures/ten_mistakes.yaml"],),
    "plan": (["--env", "prod"], ["--env", "serving", *_SERVING]),
    "checklist": (["--env", "prod"],),
    "explain MODEL": (["qwen3-32b-fp8", "--env", "prod"], ["gpt-oss-120b", "--env", "prod"]),
    "explain CODE": (["KV001"],),
    "size": (["qwen3-32b-fp8"],),
    "estimate": (
        ["--model", "Qwen/Qwen3-8B", "--accelerator", "l40s"],
        ["--model", "Qwen/Qwen3-8B", "--accelerator", "t4"],
    ),
    "catalog accelerators": ([],),
    "catalog instances": ([],),
    "catalog models": ([],),
    "catalog engines": ([],),
    "endpoint": (["qwen3-32b-fp8", "--env", "prod"],),
}
"""Command to the arguments of runs whose documents have every key together."""
_HEAD = """# JSON reference

Written by `.ci/reference.py` from documents of the commands. With `--output json` a command prints one document,
`estimate --batch` one a line. `schemaVersion` changes when a key goes or changes its meaning; new keys may come at any time.
Memory is in GiB, money in US dollars, time in seconds, unless the key says otherwise. `[]` stands for each entry of a list,
`NAME` for each key of a mapping by name.

A finding is `code`, `severity` (`error` or `warning`), `file`, `line`, `column`, `subject` (the model), `message` and `fix`;
what is not known is null.
"""
_LONGEST_EXAMPLE = 60
_FINDING = {"code", "severity", "file", "line", "column", "subject", "message", "fix"}
# Mappings whose keys are names: of quotas, capacity types, accelerators.
_NAMED = ("byCapacity", "prices", "releases", "peakTflops", "memoryBytes")


def page() -> str:
    text = [_HEAD]
    for command, runs in _RUNS.items():
        documents = [
            printed([command.split()[0], *_topic(command), *run, "--output", "json"]) for run in runs
        ]
        text.append(f"## {command}\n")
        rows: dict[str, tuple[list[str], str]] = {}
        for document in documents:
            for path, value in leaves(document):
                kinds, _ = rows.setdefault(path, ([], _example(value)))
                if (kind := _kind(value)) not in kinds:
                    kinds.append(kind)
                if kinds[0] == "null" and kind != "null":
                    rows[path] = ([*kinds[1:], "null"], _example(value))
        lines = [f"| `{path}` | {' or '.join(kinds)} | {shown} |\n" for path, (kinds, shown) in rows.items()]
        text.append("| Key | Type | Such as |\n|---|---|---|\n" + "".join(lines))
    text.append("## Commands that ask an account, a cluster or an endpoint\n")
    rows_of_others = sorted(_others())
    text.append(
        "| `kind` | Keys |\n|---|---|\n" + "".join(f"| `{k}` | {keys} |\n" for k, keys in rows_of_others)
    )
    return "\n".join(text)


def _topic(command: str) -> list[str]:
    name, _, topic = command.partition(" ")
    return [topic] if name == "catalog" else []


def printed(words: Sequence[str]) -> Any:
    """The document that a command prints, whatever its exit code."""
    out = io.StringIO()
    bare = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MODELYARD_", "FORCE_COLOR"))
    }
    with (
        mock.patch.object(sys, "argv", ["modelyard", *words]),
        mock.patch.dict(os.environ, bare, clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        main()
    return json.loads(out.getvalue())


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path and value of everything that is no mapping; findings are not unfolded."""
    if isinstance(value, dict) and value.keys() >= _FINDING:
        yield path, "a finding"
        extra = {key: inner for key, inner in value.items() if key not in _FINDING}
        yield from leaves(extra, path) if extra else ()
    elif isinstance(value, dict):
        named = path.rpartition(".")[2].removesuffix("[]") in _NAMED
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{'NAME' if named else key}".removeprefix("."))
    elif isinstance(value, list) and value:
        for each in value:
            yield from leaves(each, f"{path}[]")
    else:
        yield path, value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if value == "a finding":
        return "a finding"
    return {bool: "true or false", int: "number", float: "number", str: "text", list: "list"}[type(value)]


def _example(value: Any) -> str:
    if value in (None, "a finding", []):
        return ""
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 4]}…"
    return f"`{shown}`".replace("|", "\\|")


def _others() -> Iterator[tuple[str, str]]:
    """Kind and keys of the documents of the other commands, from the calls that print them."""
    known = {"Validation", "Plan", "Checklist", "Explanation", "Check", "Sizing", "Catalog", "Endpoint"}
    found: dict[str, dict[str, None]] = {}
    for path in sorted(_CODE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            kind = node.args[0]
            if node.func.id == "print_json" and isinstance(kind, ast.Constant) and kind.value not in known:
                keys = [keyword.arg for keyword in node.keywords if keyword.arg]
                found.setdefault(str(kind.value), {}).update(dict.fromkeys(keys))
    for kind, keys in found.items():
        yield kind, ", ".join(f"`{key}`" for key in keys)
