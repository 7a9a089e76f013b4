"""Enumerations that are resolved lazily, because engines may come from other packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError


def one_of(names: Callable[[], tuple[str, ...]], known: Callable[[object], bool]) -> tuple[Any, Any]:
    """Metadata of an `Annotated` text that must be one of `names`; `known` is the fast check of a value."""

    def check(value: object) -> object:
        if isinstance(value, str) and known(value):
            return value
        quoted = [f"'{name}'" for name in names()]
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(quoted[:-1])} or {quoted[-1]}"})

    def describe(schema: dict[str, Any]) -> None:
        schema["enum"] = list(names())

    return BeforeValidator(check), Field(json_schema_extra=describe)
