"""The base class of all user input: frozen, no unknown keys, camelCase in YAML and snake_case in Python."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from modelyard.engines.registry import service_prefixes
from modelyard.spec.descriptions import descriptions


class Document(BaseModel):
    """A frozen record that rejects unknown keys.

    Defaults that are documents use `model_construct()`: a call would build the validator at every start of a
    command.
    """

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,  # a command validates three of about fifty classes and builds only their validators
        extra="forbid",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """As usual, with the descriptions of the fields."""
        schema: dict[str, Any] = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in descriptions(cls).items():
            properties[cls.model_fields[name].alias or name].setdefault("description", text)
        return schema


_DURATION = re.compile(r"^(?P<value>[0-9]{1,9})(?P<unit>s|m|h)$")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def _parse_duration(value: object) -> object:
    if isinstance(value, str) and (match := _DURATION.match(value)):
        return int(match["value"]) * _SECONDS[match["unit"]]
    if isinstance(value, str):
        raise ValueError("must be a whole number with a unit, such as 90s, 20m or 1h")
    return value


def _parse_budget(value: object) -> object:
    return None if value == "auto" else _parse_duration(value)


def _not_a_dns_env_clash(value: str) -> str:
    # Kubernetes injects VLLM_PORT=tcp://… for a Service called vllm…, which vLLM reads as its own setting.
    for prefix in service_prefixes():
        if value == prefix or value.startswith(f"{prefix}-"):
            raise ValueError(
                f"must not be '{prefix}' or start with '{prefix}-': Kubernetes would inject {prefix.upper()}_* variables"
            )
    return value


DNS_LABEL = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"

Seconds = Annotated[
    int,
    BeforeValidator(
        _parse_duration, json_schema_input_type=Annotated[str, Field(pattern=_DURATION.pattern)] | int
    ),
    Field(gt=0, le=10**9),
]
"""A duration in seconds; `90s`, `20m` or `1h` in YAML."""

Budget = Annotated[
    Annotated[int, Field(gt=0, le=10**9)] | None,
    BeforeValidator(
        _parse_budget,
        json_schema_input_type=Annotated[str, Field(pattern=rf"^auto$|{_DURATION.pattern}")] | int,
    ),
]
"""A duration like `Seconds`, or None (`auto` in YAML) for one that the plan derives."""

_LATENCY = re.compile(r"^(?P<value>[0-9]+(\.[0-9]+)?)(?P<unit>ms|s)$")
_PERCENT = re.compile(r"^(?P<value>[0-9]+(\.[0-9]+)?)%$")


def _parse_latency(value: object) -> object:
    if isinstance(value, str) and (match := _LATENCY.match(value)):
        return float(match["value"]) / (1000 if match["unit"] == "ms" else 1)
    if isinstance(value, str):
        raise ValueError("must be a number with a unit, such as 800ms or 1.5s")
    return value


def _parse_percent(value: object) -> object:
    if isinstance(value, str) and (match := _PERCENT.match(value)):
        return float(match["value"]) / 100
    if isinstance(value, str):
        raise ValueError("must be a percentage, such as 0.5%")
    return value


Latency = Annotated[
    float,
    BeforeValidator(
        _parse_latency, json_schema_input_type=Annotated[str, Field(pattern=_LATENCY.pattern)] | float
    ),
    Field(gt=0, le=600, allow_inf_nan=False),
]
"""Seconds; `800ms` or `1.5s` in YAML."""

Share = Annotated[
    float,
    BeforeValidator(
        _parse_percent, json_schema_input_type=Annotated[str, Field(pattern=_PERCENT.pattern)] | float
    ),
]
"""A share between 0 and 1; `0.5%` in YAML."""

ObjectName = Annotated[
    str, Field(pattern=DNS_LABEL, min_length=2, max_length=40), AfterValidator(_not_a_dns_env_clash)
]
"""A DNS-1123 label of 2 to 40 characters; the rest of the 63 is left for suffixes that Kubernetes adds."""

SecretName = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
"""The logical name of a secret; each environment maps it to a secret in its account."""
