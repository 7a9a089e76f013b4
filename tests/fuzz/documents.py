"""Documents that are valid except in a few places, which random bytes rarely produce."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.spec.yaml_source import YamlSource, parse_yaml

_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70),
    st.integers(-(10**39), 10**39),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        [
            *(
                "auto",
                "none",
                "l40s:4",
                "h100:16",
                "l40s:0",
                "hf://a/b",
                "s3://a/b",
                "efs://a",
                "../..",
                "",
                " ",
                "\n",
            ),
            *(
                "9" * 30 + "s",
                "1h",
                "1e3",
                "0.5%",
                "999%",
                "NaN",
                "2026-12-24T11:30:00Z",
                "9999-12-31",
                "0 0 31 2 *",
            ),
            *(
                "x" * 3000,
                "٣s",
                "é",
                "a\tb",
                "{{ x }}",
                "$(HOME)",
                "123456789012",
                "10.0.0.0/8",
                "::/0",
                "1.36",
            ),
            *(10**12, -1, 0, 1e308, 1e-308, 10**18),
        ]
    ),
)
odd = st.recursive(
    _ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=4,
)


def places(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in `value`."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [*([at] if at else []), *(path for key, part in inner for path in places(part, (*at, key)))]


@st.composite
def changed(draw: st.DrawFn, documents: tuple[Any, ...]) -> Any:
    """One of `documents` with up to four places dropped, replaced, renamed or put beside another one's."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 4))):
        if not (found := places(document)):
            break
        *before, last = draw(st.sampled_from(found))
        holder: Any = document
        for key in before:
            holder = holder[key]
        match draw(st.sampled_from(["drop", "replace", "rename", "wrap"])):
            case "drop":
                del holder[last]
            case "replace":
                holder[last] = draw(odd)
            case "rename" if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = holder.pop(last)
            case _:
                holder[last] = draw(
                    st.sampled_from([[holder[last]], {"a": holder[last]}, [holder[last]] * 3])
                )
    return document


def parsed(seeds: list[bytes]) -> tuple[Any, ...]:
    """What those of `seeds` say that are whole documents."""
    found = [parse_yaml(seed.decode(errors="replace"), "seed") for seed in seeds]
    return tuple(source.data for source in found if isinstance(source, YamlSource))


def by_bytes(read: Callable[[bytes], object], seeds: Callable[[], list[bytes]]) -> Callable[[bytes], object]:
    """`read` of changed documents that follow from the fuzzer's bytes; YAML and JSON are the same here."""

    @cache
    def driven() -> Callable[[bytes], object]:
        @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(changed(parsed(seeds())))
        def test(document: Any) -> None:
            read(json.dumps(document).encode())

        found: Callable[[bytes], object] = test.hypothesis.fuzz_one_input  # type: ignore[attr-defined]
        return found

    return lambda content: driven()(content)
