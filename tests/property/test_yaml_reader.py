"""Files parse as with another YAML 1.2 parser."""

from __future__ import annotations

import io
import json
import re
from datetime import date
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from modelyard.findings import Finding
from modelyard.spec.yaml_source import parse_yaml

PROFILE = settings(max_examples=300, deadline=None)
pytestmark = pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")

# Without what no file can hold, line separators of YAML 1.1, and the two words that JSON has for no number.
TEXT = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"], blacklist_characters="\ufeff\ufffe\uffff"),
    max_size=12,
).filter(lambda text: "NaN" not in text and "Infinity" not in text)
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | TEXT
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
# YAML 1.2.2, section 10.3.2.
INTEGER = re.compile(r"[-+]?[0-9]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def read(text: str) -> Any:
    found = parse_yaml(text, "model.yaml")
    return found.message if isinstance(found, Finding) else found.data


def read_by_another(text: str) -> Any:
    """The data of ruamel.yaml, or whatever it raised."""
    try:
        return YAML(typ="safe", pure=True).load(text)
    except Exception as error:  # noqa: BLE001 (it fails in many ways)
        return error


@PROFILE
@given(
    st.text("0123456789_+-.eExXobinfaNT", min_size=1, max_size=8)
    | st.sampled_from(
        ["true", "True", "TRUE", "yes", "no", "on", "Null", "NULL", "~", "null", "nUll", "falsE"]
    )
)
@example(".0E0")
@example("1_000")
@example("0o17")
@example("017")
@example("1e3")
@example("+.INF")
def test_a_word_without_quotes_means_the_same(word: str) -> None:
    theirs = read_by_another(f"a: {word}")
    ours = read(f"a: {word}")

    if INTEGER.fullmatch(word) or FLOAT.fullmatch(word):  # it takes `.0E0` for text
        assert repr(ours) == repr({"a": int(word) if INTEGER.fullmatch(word) else float(word)})
    elif isinstance(theirs, Exception):  # it fails on `-_`, which looks like a number and is none
        assert isinstance(ours, str) or ours == {"a": word}
    elif isinstance(theirs["a"], date) or (
        isinstance(theirs["a"], int | float) and "_" in word.lstrip("+-.")[:1]
    ):
        assert ours == {"a": word}  # a date is text, and no number begins with `_`
    else:
        assert repr(ours) == repr(theirs)


@PROFILE
@given(st.dictionaries(TEXT, DATA, max_size=5))
def test_data_is_read_as_it_was_written(data: dict[str, Any]) -> None:
    """In blocks with as few quotes as may be, and in braces with all of them."""
    writer, text = YAML(typ="safe", pure=True), io.StringIO()
    writer.default_flow_style, writer.allow_unicode, writer.width = False, True, 10**6
    writer.dump(data, text)

    for written in (
        text.getvalue(),
        json.dumps(data, ensure_ascii=False).replace("NaN", ".nan").replace("Infinity", ".inf"),
    ):
        assert json.dumps(read(written), sort_keys=True) == json.dumps(data, sort_keys=True)


@PROFILE
@given(
    st.lists(
        st.sampled_from(
            [
                *"ab1:{}[],&*!|>-?#'\"%@`~ \n",
                "\n  ",
                "\n- ",
                "a: ",
                "<<: ",
                "&x ",
                "*x",
                "- ",
                ": ",
                "!!str ",
                "---\n",
            ]
        ),
        max_size=25,
    )
)
@example(["a: ", "!"])
def test_whatever_is_read_means_the_same(pieces: list[str]) -> None:
    text = "".join(pieces)
    ours, theirs = read(text), read_by_another(text)

    if not isinstance(ours, str) and not isinstance(theirs, Exception):
        assert repr(ours) == repr(theirs)
