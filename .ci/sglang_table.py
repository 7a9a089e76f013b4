"""Print SGLang's flags, parsers and architectures in the format of `engines/sglang/releases/VERSION.json`,
from a wheel.

`pip download --no-deps sglang==VERSION && python .ci/sglang_table.py sglang-VERSION-….whl`. The arguments are
annotated fields in the source, so reading them needs neither torch nor a GPU.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
import sys
from typing import Any
from zipfile import ZipFile

FIELDS = "sglang/srt/arg_groups/fields/"
CHOICES = "sglang/srt/arg_groups/choices.py"
REGISTERED = "sglang/srt/server_args.py"  # flags added to its parser by hand
TOOL_PARSERS = "sglang/srt/function_call/parser_names.py"
REASONING_PARSERS = "sglang/srt/parser/reasoning_parser_names.py"
_TYPES = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}


def lists(source: str) -> dict[str, list[Any]]:
    """Constants of a module that are literal lists, such as `LOAD_FORMAT_CHOICES`."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def flag(node: ast.AnnAssign, known: dict[str, list[Any]]) -> tuple[str, dict[str, Any]] | None:
    """Name and row of one annotated field; None if it is not a flag."""
    annotation = node.annotation
    if not (
        isinstance(annotation, ast.Subscript)
        and isinstance(annotation.value, ast.Name)
        and annotation.value.id == "A"
    ):
        return None
    assert isinstance(annotation.slice, ast.Tuple)
    assert isinstance(node.target, ast.Name)
    kind, *meta = annotation.slice.elts
    words = {
        keyword.arg: keyword.value
        for call in meta
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg
    }
    if "no_cli" in words:
        return None
    named = re.findall(r"\b(bool|int|float|str)\b", ast.unparse(kind))
    row: dict[str, Any] = {"type": _TYPES[named[0]] if named else "string"}
    if choices := words.get("choices"):
        with contextlib.suppress(KeyError, ValueError):  # computed when the parser is built
            row["choices"] = known[choices.id] if isinstance(choices, ast.Name) else ast.literal_eval(choices)
    if "nargs" in words or "LoRAPathAction" in ast.unparse(annotation):
        row["many"] = True
    if row["type"] == "boolean" and "store_false" not in ast.unparse(annotation):
        row["onlyOn"] = True
    if isinstance(aliases := words.get("aliases"), ast.List):
        row["aliases"] = [str(ast.literal_eval(alias)).removeprefix("--") for alias in aliases.elts]
    name = words.get("cli_name")
    text = str(ast.literal_eval(name)) if name is not None else node.target.id.replace("_", "-")
    return text.removeprefix("--"), row


def registered(source: str) -> dict[str, dict[str, Any]]:
    """Flags of `parser.add_argument("--name", …)`; choices computed by functions come from the parsers' own
    lists."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            names = [n.value for n in node.args if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            words = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
            switch = any(
                mark in words.get("action", "") for mark in ("store_true", "StoreTrue", "StoreConst")
            )
            row: dict[str, Any] = {
                "type": "boolean" if switch else _TYPES.get(words.get("type", "str"), "string")
            }
            if switch:
                row["onlyOn"] = True
            if len(names) > 1:
                row["aliases"] = [name.removeprefix("--") for name in names[1:]]
            if names:
                found[names[0].removeprefix("--")] = row
    return found


def table(wheel: ZipFile) -> dict[str, Any]:
    def read(path: str) -> str:
        return wheel.read(path).decode()

    known = lists(read(CHOICES))
    flags = registered(read(REGISTERED))
    for path in wheel.namelist():
        if path.startswith(FIELDS) and path.endswith(".py"):
            for node in ast.walk(ast.parse(read(path))):
                if isinstance(node, ast.AnnAssign) and (found := flag(node, known)):
                    flags[found[0]] = found[1]
    entries = re.compile(r"^EntryClass\s*=\s*(.+?)$(?=\n\S|\n*\Z)", re.MULTILINE | re.DOTALL)
    classes: set[str] = set()
    for path in wheel.namelist():
        if re.fullmatch(r"sglang/srt/models/\w+\.py", path):
            classes |= {
                name for entry in entries.findall(read(path)) for name in re.findall(r"[A-Z]\w+", entry)
            }
    (tools,) = (v for k, v in lists(read(TOOL_PARSERS)).items() if k == "TOOL_CALL_PARSER_NAMES")
    (reasoning,) = (v for k, v in lists(read(REASONING_PARSERS)).items() if k == "REASONING_PARSER_NAMES")
    return {
        "toolParsers": sorted(tools),
        "reasoningParsers": sorted(reasoning),
        "architectures": sorted(classes),
        "flags": dict(sorted(flags.items())),
    }


def main() -> None:
    with ZipFile(sys.argv[1]) as wheel:
        print(json.dumps(table(wheel), indent=1))


if __name__ == "__main__":
    main()
