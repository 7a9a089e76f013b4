"""Generates docs/reference from docstrings, commands, schemas and what the commands print; with --check,
checks that it is up to date."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import reference_commands
import reference_files
import reference_output

FOLDER = Path("docs")
PARTS = {
    "modelyard": "What programs need; nothing here starts jsii.",
    "modelyard.objects.composition": "What charts of your own are given.",
    "modelyard.engines": "What an engine of another package is made of.",
    "modelyard.spec": "What constructs take as an environment's file has it.",
    "modelyard.k8s": "cdk8s constructs, with the extra `k8s`.",
    "modelyard.aws": "CDK constructs, with the extra `aws`.",
}
NAMES = {
    "modelyard.objects.composition": ("Composition", "Part", "Hook", "RenderError"),
    "modelyard.engines": ("Engine", "Release", "ServeSettings", "Signals"),
    "modelyard.spec": ("Pool",),
}
_HEAD = """# Python reference

Written by `.ci/reference.py` from the docstrings. Names that are not here may change in any release.
"""


def page() -> str:
    text = [_HEAD]
    for module_name, about in PARTS.items():
        module = importlib.import_module(module_name)
        text.append(f"## {module_name}\n\n{about}\n")
        for name in NAMES.get(module_name) or module.__all__:
            text += entry(name, getattr(module, name))
    return "\n".join(text)


def entry(name: str, item: Any) -> Iterator[str]:
    """Heading, signature, docstring and attributes of one name."""
    yield f"### {name}\n"
    if inspect.isclass(item) or inspect.isfunction(item):
        yield f"```python\n{name}{signature(item)}\n```\n"
        if text := inspect.getdoc(item) if own_docstring(item) else None:
            yield prose(text) + "\n"
    else:
        yield f"```python\n{name} = {str(item).replace('typing.', '')}\n```\n"
    if inspect.isclass(item):
        rows = [*attributes(item)]
        if rows:
            if "\nArgs:\n" in str(item.__doc__):  # avoids two lists of the same arguments
                yield "Attributes:\n"
            yield "\n".join(rows) + "\n"


def own_docstring(item: Any) -> bool:
    return bool(item.__doc__) and not str(item.__doc__).startswith(f"{item.__name__}(")


def signature(item: Any) -> str:
    """The signature without package prefixes; one argument per line if there are many."""
    if hasattr(item, "model_fields"):
        return "(...)"  # its fields are listed below
    # jsii's metaclass hides the arguments of its classes.
    found = inspect.signature(item.__init__ if inspect.isclass(item) else item)
    parameters = [p for p in found.parameters.values() if p.name != "self"]
    parts, named = [], False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not named:
            parts.append("*")
            named = True
        default = "" if each.default is each.empty else f" = {literal(each.default)}"
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        parts.append(f"{star}{each.name}: {type_name(each.annotation)}{default}")
    returned = "" if inspect.isclass(item) else f" -> {type_name(found.return_annotation)}"
    line = f"({', '.join(parts)}){returned}"
    if len(line) <= 100:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){returned}"


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def literal(value: Any) -> str:
    """A default value as in the source."""
    return str(value) if isinstance(value, enum.Enum) else repr(value)


def type_name(annotation: Any) -> str:
    """A type as in the source, without packages."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(modelyard|aws_cdk|constructs|collections|pathlib|typing)(\.\w+)*\.(?=\w)", "", text)


def attributes(item: type) -> Iterator[str]:
    documented = dict(own_attributes(item))
    for name, member in sorted(vars(item).items()):
        if name.startswith(("_", "model_")):
            continue
        if isinstance(member, property) and member.fget and member.fget.__doc__:
            yield f"- `{name}`: {first_line(member.fget.__doc__)}"
        elif inspect.isfunction(member) and member.__doc__:
            yield f"- `{name}{signature(member)}`: {first_line(member.__doc__)}".replace("\n    ", " ")
    for name, field in getattr(item, "model_fields", {}).items():
        about = f": {first_line(field.description)}" if field.description else ""
        yield f"- `{name}`{about}"
    if dataclasses.is_dataclass(item):
        for field in dataclasses.fields(item):
            about = f": {documented[field.name][1]}" if field.name in documented else ""
            yield f"- `{field.name}: {str(field.type).replace(chr(39), '')}`{about}"
    elif not hasattr(item, "model_fields"):
        for name, (kind, about) in documented.items():
            yield f"- `{name}: {kind}`: {about}"


def own_attributes(item: type) -> Iterator[tuple[str, tuple[str, str]]]:
    """Attributes with a docstring, in source order: name, type and first line."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(item)))):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.With):
            continue
        for found, text in pairwise(node.body):
            if not (isinstance(found, ast.Assign | ast.AnnAssign) and is_text(text)):
                continue
            name = ast.unparse(found.target if isinstance(found, ast.AnnAssign) else found.targets[0])
            kind = found.annotation if isinstance(found, ast.AnnAssign) else found.value
            if isinstance(kind, ast.Call):
                kind = kind.func
            yield (
                name.removeprefix("self."),
                (ast.unparse(kind), first_line(ast.literal_eval(ast.unparse(text)))),
            )


def first_line(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())


def prose(text: str) -> str:
    """The docstring as Markdown, with `Args:` and `Raises:` as lists."""
    lists = re.sub(r"\n {8,}", " ", re.sub(r"(Args|Raises):\n", r"\1:\n\n", text))
    return re.sub(r"\n {4}(\w+): ", r"\n- `\1`: ", lists)


def main() -> int:
    pages = {
        "reference/python.md": page,
        "reference/commands.md": reference_commands.page,
        "reference/files.md": reference_files.page,
        "reference/output.md": reference_output.page,
        "manual/share/man/man1/modelyard.1": reference_commands.manual,
    }
    stale = 0
    for name, make in pages.items():
        path, written = FOLDER / name, make()
        if "--check" not in sys.argv:
            path.write_text(written, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != written:
            print(f"{path} is out of date: python .ci/reference.py writes it", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
