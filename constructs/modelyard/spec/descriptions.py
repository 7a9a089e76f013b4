"""What the fields of a document are for: the texts below them in the source.

pydantic could read them too (`use_attribute_docstrings`), but it does so when a class is made, which is a
tenth of a second at every start of a command.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from pydantic import BaseModel


@cache
def descriptions(document: type[BaseModel]) -> Mapping[str, str]:
    """Field name to its text, for each field that has one; those of the classes that it derives from, too."""
    found: dict[str, str] = {}
    for owner in reversed(document.__mro__):
        if issubclass(owner, BaseModel) and owner is not BaseModel:
            found |= dict(_texts(owner))
    return MappingProxyType({name: found[name] for name in document.model_fields if name in found})


def _texts(document: type[BaseModel]) -> Iterator[tuple[str, str]]:
    try:
        source = inspect.getsource(document)
    except OSError:  # a class made at run time
        return
    [definition] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(said))):
                    yield field.target.id, inspect.cleandoc(said)
