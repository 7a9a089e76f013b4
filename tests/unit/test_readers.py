"""Every module that reads a file or parses text is fuzzed, or listed as exempt."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.fuzz.readers import NOT_OF_USERS, READERS

PRODUCT = Path(__file__).parents[2] / "constructs" / "modelyard"
# Methods and functions by which a text or a file comes in.
_READING = frozenset(
    {
        "loads",
        "load",
        "load_all",
        "read_text",
        "read_bytes",
        "read_file",
        "read_yaml",
        "parse_json",
        "parse_yaml",
        "open",
    }
)
_OWN = frozenset({"reading", "spec.yaml_source"})


def reads(source: str) -> bool:
    """Whether the module calls one of the reading functions."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
    return bool(names & _READING)


def modules_that_read() -> set[str]:
    return {
        ".".join(path.relative_to(PRODUCT).with_suffix("").parts)
        for path in PRODUCT.rglob("*.py")
        if reads(path.read_text(encoding="utf-8"))
    }


def test_every_module_that_reads_is_fuzzed_or_excused() -> None:
    fuzzed = {module for reader in READERS.values() for module in reader.modules}

    assert modules_that_read() - fuzzed - NOT_OF_USERS.keys() == set()


def test_the_table_names_no_module_that_is_gone() -> None:
    named = {module for reader in READERS.values() for module in reader.modules} | NOT_OF_USERS.keys()

    assert {name for name in named if not (PRODUCT / f"{name.replace('.', '/')}.py").is_file()} == set()


@pytest.mark.parametrize(
    "planted",
    ["import json\njson.loads(text)", "path.read_text()", "yaml.load(text, Loader=yaml.CSafeLoader)"],
)
def test_a_planted_reader_is_seen(planted: str) -> None:
    assert reads(planted)
