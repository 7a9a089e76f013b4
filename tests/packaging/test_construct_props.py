"""Constructs for users' own stacks and charts: few props, each described, and described attributes."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from itertools import pairwise

import pytest
from constructs import Construct

from modelyard import aws, k8s

CONSTRUCTS = [
    item
    for module in (aws, k8s)
    for item in (getattr(module, name) for name in module.__all__)
    if inspect.isclass(item) and issubclass(item, Construct)
]


def props(item: type) -> list[inspect.Parameter]:
    constructor = getattr(item, "__init__")  # noqa: B009 -- mypy knows no __init__ of a type
    found = inspect.signature(constructor).parameters.values()
    return [each for each in found if each.name not in ("self", "scope", "construct_id")]


@pytest.mark.parametrize("item", CONSTRUCTS, ids=lambda item: item.__name__)
def test_the_docstring_says_what_each_prop_is(item: type) -> None:
    _, _, described = (inspect.getdoc(item) or "").partition("\nArgs:\n")

    assert re.findall(r"^ {4}(\w+): ", described.partition("\nRaises:")[0], re.MULTILINE) == [
        each.name for each in props(item)
    ]


@pytest.mark.parametrize("item", CONSTRUCTS, ids=lambda item: item.__name__)
def test_each_public_attribute_says_what_it_is(item: type) -> None:
    undescribed = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(item)))):
        body = node.body if isinstance(node, ast.FunctionDef | ast.With) else []
        for statement, after in pairwise([*body, ast.Pass()]):
            if not isinstance(statement, ast.Assign | ast.AnnAssign):
                continue
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if ast.unparse(target).startswith("self.") and not described:
                undescribed.append(ast.unparse(target).removeprefix("self."))

    assert [name for name in undescribed if not name.startswith("_")] == []


@pytest.mark.parametrize("item", CONSTRUCTS, ids=lambda item: item.__name__)
def test_no_prop_needs_a_whole_environment(item: type) -> None:
    needing = [
        each.name
        for each in props(item)
        if re.search(r"\bEnvironment\b", str(each.annotation))
        and each.default is not None
        and "str" not in str(each.annotation)
    ]
    assert needing == []
    if item in vars(aws).values():
        assert not any("Environment" in str(each.annotation) for each in props(item))
