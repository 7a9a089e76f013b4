"""What the schemas of custom resource definitions say of an object."""

from __future__ import annotations

from typing import Any

import pytest

from modelyard.object_rules.definitions import complaints


def schema(mode: dict[str, Any]) -> dict[str, Any]:
    """Of a kind whose `spec.mode` is required."""
    spec = {"type": "object", "required": ["mode"], "properties": {"mode": mode}}
    return {"type": "object", "properties": {"spec": spec}}


DEFAULTED = {"type": "string", "enum": ["a", "b"], "default": "a"}


@pytest.mark.parametrize("spec", [{}, {"mode": None}, {"mode": "b"}])
def test_a_default_is_filled_in_before_the_schema_is_asked(spec: dict[str, Any]) -> None:
    """So does the API server, also for null where the field is not nullable: tests/cluster."""
    assert complaints({"spec": spec}, schema(DEFAULTED)) == []


@pytest.mark.parametrize("mode", [{"type": "string"}, {"type": "string", "nullable": True, "default": "a"}])
def test_null_is_a_value_where_there_is_no_default_for_it(mode: dict[str, Any]) -> None:
    accepted = complaints({"spec": {"mode": None}}, schema(mode)) == []

    assert accepted is bool(mode.get("nullable"))
