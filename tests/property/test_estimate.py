"""For any config.json or question, the answer is one line in the documented format."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelyard.checkpoints import UnreadableConfig, architectures, read_config
from modelyard.cli.answers import answer, answer_line
from modelyard.hardware import accelerators
from modelyard.memory.estimate import estimate
from modelyard.spec.question import read_question, read_questions
from tests.unit.given import ANSWER_KEYS as KEYS

PROFILE = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))

numbers = st.one_of(st.integers(-(10**13), 10**13), st.floats(), st.sampled_from([0, 1, -1, 10**12, 10**400]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
scales = st.sampled_from([0, -1, 0.5, 2, 3, 10, 1e3, 1e6, 1e12, 1e300, math.nan, math.inf])


def paths(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in `value`; of a list the first."""
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    )
    return [*([at] if at else []), *(path for key, part in inner for path in paths(part, (*at, key)))]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A published config with up to four fields dropped, replaced or scaled."""
    config = copy.deepcopy(architectures().config(draw(st.sampled_from(sorted(architectures())))))
    for _ in range(draw(st.integers(1, 4))):
        if not (places := paths(config)):
            break
        *before, last = draw(st.sampled_from(places))
        holder: Any = config
        for key in before:
            holder = holder[key]
        kind = draw(st.sampled_from(["drop", "replace", "scale"]))
        if kind == "drop":
            del holder[last]
        elif kind == "scale" and isinstance(holder[last], int | float) and abs(holder[last]) < 1e13:
            holder[last] = float(holder[last]) * draw(scales)
        else:
            holder[last] = draw(anything)
    return config


@st.composite
def settings_of_a_question(draw: st.DrawFn) -> dict[str, Any]:
    """Everything beside the model: mostly sensible, now and then not."""
    chosen: dict[str, Any] = {"accelerator": draw(st.sampled_from(sorted(accelerators())))}
    some = {
        "tensorParallel": st.sampled_from([1, 2, 3, 4, 8, 16, 10**9]),
        "pipelineParallel": st.sampled_from([1, 2, 5, 10**9]),
        "dataParallel": st.sampled_from([1, 2, 8]),
        "expertParallel": st.booleans(),
        "gpuMemoryUtilization": st.floats(0, 1),
        "maxModelLen": st.integers(1, 10**9),
        "maxNumSeqs": st.integers(1, 10**9),
        "maxNumBatchedTokens": st.integers(1, 10**9),
        "kvCacheDtype": st.sampled_from(["auto", "fp8", "fp8_ds_mla"]),
        "quantization": st.sampled_from(["awq", "fp8", "gguf", "no-such-method", ""]),
        "dtype": st.sampled_from(["auto", "bfloat16", "float32"]),
        "enforceEager": st.booleans(),
        "engine": st.sampled_from(["vllm", "vllm-neuron", "llama-server"]),
        "engineVersion": st.sampled_from(["0.6.0", "0.19.0", "99.0", "", "x", "0.0.1"]),
        "nGpuLayers": st.integers(-1, 100),
    }
    for key in draw(st.lists(st.sampled_from(sorted(some)), max_size=4, unique=True)):
        chosen[key] = draw(some[key])
    return chosen


def check(line: str) -> dict[str, Any]:
    """The one answer in `line`, under the contract."""
    assert line.endswith("\n")
    assert line.count("\n") == 1
    found: dict[str, Any] = json.loads(line, parse_constant=lambda word: 1 / 0)
    assert list(found) == KEYS
    figures = [found[key] for key in KEYS[1:8]]
    assert all(figure is None or (math.isfinite(figure) and figure >= 0) for figure in figures), found
    assert found["longestLen"] >= 0
    assert all(list(said) == ["code", "message"] for said in found["findings"])
    assert found["fits"] or found["findings"]
    return found


@PROFILE
@given(mutated(), st.sampled_from([None, "awq", "gguf Q4_K_M"]))
def test_a_config_is_read_or_refused_with_the_reason(
    config: dict[str, Any], quantization: str | None
) -> None:
    with contextlib.suppress(UnreadableConfig):
        read_config(config, quantization=quantization)


@PROFILE
@given(mutated(), settings_of_a_question())
def test_every_config_and_setting_has_an_answer(config: dict[str, Any], chosen: dict[str, Any]) -> None:
    question = read_question({"id": "q", "config": config, **chosen})
    if question.request is not None:
        estimate(question.request)  # without the net under a batch
    found = check(answer_line(answer(question)))

    assert found["id"] == "q"


@PROFILE
@given(
    st.dictionaries(st.sampled_from(["id", "model", "config", "accelerator", "maxModelLen", "x"]), anything)
)
def test_every_object_has_an_answer(record: dict[str, Any]) -> None:
    check(answer_line(answer(read_question(record))))


@PROFILE
@given(st.binary(max_size=200))
def test_every_line_of_bytes_has_at_most_one_answer(line: bytes) -> None:
    lines = [answer_line(answer(question)) for question in read_questions(io.BytesIO(line))]

    assert len(lines) <= line.count(b"\n") + 1
    for said in lines:
        check(said)
