"""YAML of objects: the same bytes as PyYAML, but faster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from modelyard.objects.yaml_text import emitted, to_yaml

WORDS = st.sampled_from(
    [
        "", " ", "a", "yes", "No", "on", "null", "~", "1", "0x1f", "1:30", "1e3", "2026-11-22", "=", "<<", "- a", "? a", "a: b",
        "a #b", "#a", "'", '"', "a'b", "{{ $x }}", "[a]", "*a", "&a", "!a", "%a", "@a", "`a`", "a\nb", "a\n", "\na", " a\n b", "a\n\n",  # noqa: E501
        "a \nb", "\ta\nb", "a\tb", "é", "日本", "\u2028", "\x07", "a" * 90 + ": b", "long " * 300, "${VAR}", "|", ">", "---", "...",  # noqa: E501
        "\ufeffa", "a\r\nb", "a" * 130,
    ]
)  # fmt: skip
SCALARS = (
    WORDS | st.text(max_size=40) | st.booleans() | st.none() | st.integers() | st.floats(allow_nan=False)
)
KEYS = WORDS | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_the_text_is_what_the_library_emits(item: dict[str, Any]) -> None:
    assert to_yaml(item) == emitted(item)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_the_text_says_what_was_written(item: dict[str, Any]) -> None:
    try:
        expected = yaml.load(emitted(item), Loader=yaml.CSafeLoader)
    except yaml.YAMLError:  # characters that no YAML holds
        return
    assert yaml.load(to_yaml(item), Loader=yaml.CSafeLoader) == expected


class Shouting(str):
    """A text of a class of its own."""


@pytest.mark.parametrize("value", [("a", "b"), Shouting("a"), {1: "a"}, b"a"])
def test_what_is_no_plain_data_is_left_to_the_library(value: Any) -> None:
    try:
        expected = emitted({"k": value})
    except (TypeError, yaml.YAMLError) as error:
        with pytest.raises(type(error)):
            to_yaml({"k": value})
    else:
        assert to_yaml({"k": value}) == expected
