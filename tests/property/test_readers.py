"""A short run of `make fuzz`: every reader, a few hundred inputs, the same ones each time."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.readers import READERS

PROFILE = settings(
    max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@st.composite
def spoilt(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """One of `seeds`, or nothing, with a part replaced by other bytes."""
    seed = draw(st.sampled_from(seeds)) if seeds else b""
    start = draw(st.integers(0, len(seed)))
    end = draw(st.integers(start, min(len(seed), start + 40)))
    part = draw(
        st.one_of(
            st.binary(max_size=30), st.text(max_size=20).map(lambda text: text.encode(errors="replace"))
        )
    )
    return seed[:start] + part + seed[end:]


@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_what_it_cannot_read_and_says_so(name: str) -> None:
    reader = READERS[name]

    @PROFILE
    @given(st.one_of(st.binary(min_size=0, max_size=2000), spoilt(reader.seeds())))
    def read(content: bytes) -> None:
        with contextlib.suppress(*reader.refuses):
            reader.read(content)

    read()
