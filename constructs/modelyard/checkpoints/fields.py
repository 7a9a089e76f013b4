"""Fields of a `config.json` by canonical name, with defaults for absent ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelyard.checkpoints.families import families
from modelyard.checkpoints.limits import shown, whole_number


class UnreadableConfig(ValueError):
    """A config that cannot be read as an architecture. `missing`: the absent fields."""

    def __init__(self, reason: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.missing = missing


@dataclass(frozen=True)
class Fields:
    """Fields of one config by canonical name; aliases and the family's defaults fill in absent ones."""

    own: Mapping[str, Any]
    outer: Mapping[str, Any]
    defaults: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)
    """Names in read order: on an error, the last one is at fault."""

    def get(self, name: str) -> Any:
        self.asked.append(name)
        for source in (self.own, self.outer, self.defaults):
            for spelling in (name, *families()["aliases"].get(name, ())):
                if source.get(spelling) is not None:
                    return source[spelling]
        return None

    def number(self, name: str, default: int = 0) -> int:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, list) and value:  # some configs list one number per layer
            return max(whole_number(name, number) for number in value)
        return whole_number(name, value)

    def flag(self, name: str) -> bool | None:
        """Whether the field is true; None if it is absent."""
        value = self.get(name)
        if value is not None and value not in (True, False):
            raise UnreadableConfig(f"config.json: {name} is {shown(value)}, not true or false")
        return None if value is None else bool(value)

    def states(self, name: str) -> bool:
        """Whether the config has the field, even as null."""
        spellings = (name, *families()["aliases"].get(name, ()))
        return any(
            spelling in source for source in (self.own, self.outer, self.defaults) for spelling in spellings
        )


# Exceptions on a value of the wrong type.
STRANGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
