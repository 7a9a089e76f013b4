"""Fields of a `config.json` by their usual names, with what stands in for absent ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelyard.checkpoints.families import families
from modelyard.checkpoints.limits import shown, whole_number


class UnreadableConfig(ValueError):
    """A config from which no architecture follows. `missing` names the fields that are not there."""

    def __init__(self, reason: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.missing = missing


@dataclass(frozen=True)
class Fields:
    """Fields of one config by their usual names; aliases and the family's defaults stand in for absent
    ones."""

    own: Mapping[str, Any]
    outer: Mapping[str, Any]
    defaults: Mapping[str, Any]
    asked: list[str] = field(default_factory=list)
    """Names in the order in which they were read: the last one is at fault when reading ends."""

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
        if isinstance(value, list) and value:  # some configs give one number a layer
            return max(whole_number(name, number) for number in value)
        return whole_number(name, value)

    def flag(self, name: str) -> bool | None:
        """Whether the field is true; None where it is absent."""
        value = self.get(name)
        if value is not None and value not in (True, False):
            raise UnreadableConfig(f"config.json: {name} is {shown(value)}, not true or false")
        return None if value is None else bool(value)

    def states(self, name: str) -> bool:
        """Whether the config names the field, if only to say null."""
        spellings = (name, *families()["aliases"].get(name, ()))
        return any(
            spelling in source for source in (self.own, self.outer, self.defaults) for spelling in spellings
        )


# What reading raises of a value that has another type than the field.
STRANGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
