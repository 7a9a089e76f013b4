"""The memory model against the logs of real engines; `make accuracy` prints the same numbers."""

from __future__ import annotations

import operator
from dataclasses import replace

import pytest

from modelyard.engines import memory_facts
from modelyard.hardware import Memory
from modelyard.memory.ledger import memory_ledger
from tests.accuracy.calibrate import calibration
from tests.accuracy.evaluate import REQUIRED, Answer, answers, errors, held_out, of_family, report
from tests.accuracy.measurements import measurements

ROWS = measurements()
IN_SAMPLE = answers(ROWS)
HELD_OUT = held_out(ROWS)

# Logs whose question leaves out what their tokens depend on.
UNSAID = {
    "m161": "an fp8 cache and three drafted tokens, which the question cannot say: see below",
}


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("found", [IN_SAMPLE, HELD_OUT], ids=["in-sample", "held-out"])
def test_the_model_is_as_close_as_it_has_to_be(found: list[Answer], name: str) -> None:
    sign, limit = REQUIRED[name]
    compare = operator.le if sign == "<=" else operator.ge

    assert compare(report(found)[name], limit)


def test_enough_logs_count() -> None:
    assert len(ROWS) >= 65
    assert report(IN_SAMPLE)["rows"] >= 45
    assert len({row.family for row in ROWS}) >= 10


LOGGED_BOTH = [
    answer
    for answer in IN_SAMPLE
    if answer.measured.kv_cache and answer.measured.kv_tokens and answer.estimate.ledger
]


@pytest.mark.parametrize("answer", LOGGED_BOTH, ids=lambda answer: answer.measured.id)
def test_the_logged_cache_holds_the_logged_tokens(answer: Answer) -> None:
    """Bytes a token, through blocks and groups as the version counts them."""
    row, ledger = answer.measured, answer.estimate.ledger
    assert ledger is not None
    assert row.kv_cache is not None
    assert row.kv_tokens is not None
    if row.id in UNSAID:
        pytest.skip(UNSAID[row.id])

    assert ledger.layout.tokens(
        Memory.gib(row.kv_cache), row.question.get("maxModelLen", answer.estimate.max_model_len)
    ) == pytest.approx(row.kv_tokens, rel=0.01)


def test_most_logs_print_both() -> None:
    assert len(LOGGED_BOTH) >= 30


def test_the_table_holds_what_the_logs_imply() -> None:
    """A constant that drifts from its logs is found here; a tenth, or 50 MiB, is what medians of a few logs
    are worth."""
    for (field, since), value in calibration(ROWS).items():
        in_the_table = getattr(memory_facts("vllm", since), field)

        assert in_the_table == pytest.approx(value, rel=0.10, abs=0.05), (field, since)


def test_drafting_layers_and_tokens_take_their_share_of_a_hybrid_cache() -> None:
    """m161 leaves out what the same project runs everywhere: an fp8 cache, and three tokens drafted by the
    model's own layer. That layer widens every group, each drafted token adds a state, and the states a longer
    convolution."""
    answer = next(a for a in IN_SAMPLE if a.measured.id == "m161")
    assert answer.estimate.ledger is not None
    drafting = replace(
        answer.estimate.ledger.request, kv_cache_dtype="fp8", own_drafts=True, speculative_tokens=3
    )

    layout = memory_ledger(drafting).layout

    assert layout.tokens(Memory.gib(11.08), 262144) == pytest.approx(623873, rel=0.01)
    assert layout.concurrency(Memory.gib(11.08), 262144) == pytest.approx(2.38, abs=0.01)


def test_gpt_oss_is_met_by_logs_that_gave_no_constant() -> None:
    """Several percent of its weights were missing while experts counted in the size of their checkpoint."""
    apart = of_family(IN_SAMPLE, "gpt-oss")
    weights = [abs(error) for error in errors(apart, lambda answer: answer.weight_error)]

    assert all(answer.measured.held_out for answer in apart)
    assert len(weights) >= 5
    assert sorted(weights)[:4] == pytest.approx([0] * 4, abs=0.0005)
    assert max(weights) < 0.005
