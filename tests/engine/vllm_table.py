"""Print the table of the installed vLLM in the format of `engines/vllm/releases/VERSION.json`: `make
engine-table`.

Flags, types, choices, parsers and architectures come from the real parser and registries; values that no
parser has (image, owned and removed flags, capabilities, the advisory that sets the minimum version) are
copied from the newest shipped table.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from modelyard.engines import newest_release
from tests.engine.real_parser import ServeParser, json_type

# `vllm serve` has `--model`, but warns that it will go; ours comes first, without a flag.
_NOT_FLAGS = {"help", "model"}


def flag_rows(parser: ServeParser) -> dict[str, dict[str, Any]]:
    """Every flag under its first spelling; spellings of `no-` are the negations that the parser adds
    itself."""
    rows = {}
    for spellings in parser.facts["aliases"]:
        names = [name for name in spellings if not name.startswith(("-", "no-")) and name in parser.options]
        if not names or names[0] in _NOT_FLAGS:
            continue
        name, *others = names
        option = parser.options[name]
        row: dict[str, Any] = {"type": json_type(parser, name)}
        if option["choices"]:
            row["choices"] = sorted(option["choices"], key=lambda choice: (str(type(choice)), choice))
        if others:
            row["aliases"] = others
        if option["many"]:
            row["many"] = True
        if row["type"] == "boolean" and f"no-{name}" not in parser.options:
            row["onlyOn"] = True
        rows[name] = row
    return dict(sorted(rows.items()))


def installed_table() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        parser = ServeParser(Path(home))
        try:
            return _table(parser)
        finally:
            parser.close()


def _table(parser: ServeParser) -> dict[str, Any]:
    newest = newest_release("vllm").version
    text = files("modelyard.engines.vllm").joinpath("releases", f"{newest}.json").read_text(encoding="utf-8")
    shipped: dict[str, Any] = json.loads(text)
    version = str(parser.facts["version"]).partition("+")[0]
    return shipped | {
        "version": version,
        "image": shipped["image"].replace(newest, version),
        "about": shipped["about"]
        | {name: said.replace(newest, version) for name, said in shipped["about"].items()},
        "toolParsers": sorted(parser.facts["tool_parsers"]),
        "reasoningParsers": sorted(parser.facts["reasoning_parsers"]),
        "architectures": parser.facts["architectures"],
        "flags": flag_rows(parser),
    }


def written(table: Mapping[str, Any]) -> str:
    """One line a key, and one a flag, so that two releases can be compared line by line."""
    lines = []
    for key, value in table.items():
        if isinstance(value, dict) and key in ("flags", "owned", "removed"):
            inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    print(written(installed_table()), end="")
