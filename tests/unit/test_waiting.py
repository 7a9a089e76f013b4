"""How a Job's reports are combined, and how long `modelyard verify --wait` waits for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelyard.live.api.aws import Account
from modelyard.live.verification.checks import Observation
from modelyard.live.verification.reports import CheckJob, JobOutcome, answering, job_outcome, read_report
from modelyard.live.verification.waiting import POLL_SECONDS, RENEWAL_SECONDS, renewed, wait
from tests.unit.given import Modelyard

JOB = CheckJob("chat", "chat-smoke-1a", "models", attempts=3)
PENDING = JobOutcome(JOB, "pending", "chat-smoke-1a has not reported")


def failing(*names: str, time: str = "2026-11-21T10:00:00+00:00") -> dict[str, Any]:
    checks = [{"name": name, "outcome": "failed", "reason": f"{name} is wrong"} for name in names]
    return {
        "passed": False,
        "time": time,
        "checks": [{"name": "reachable", "outcome": "passed", "reason": None}, *checks],
    }


PASSED = {"passed": True}


@pytest.mark.parametrize(
    ("reports", "state"),
    [
        ([], "pending"),
        ([PASSED], "answered"),
        ([failing("chat")], "pending"),
        ([failing("chat")] * 2, "pending"),
        ([failing("chat"), PASSED], "answered"),
        ([failing("chat")] * 3, "failed"),
        ([failing("chat")] * 4, "failed"),
        ([*[failing("chat")] * 3, PASSED], "answered"),
    ],
)
def test_one_attempt_that_passed_is_enough_and_failure_takes_all(
    reports: list[dict[str, Any]], state: str
) -> None:
    assert job_outcome(JOB, reports).state == state


def test_the_first_reasons_of_the_latest_attempt_are_named() -> None:
    early = failing("authentication", time="2026-11-21T10:00:00+00:00")
    late = failing("chat", "streaming", "tool-call", "reasoning", time="2026-11-21T10:05:00+00:00")

    why = job_outcome(JOB, [late, early, early]).why
    assert why.endswith(
        "chat: chat is wrong; streaming: streaming is wrong; tool-call: tool-call is wrong; and 1 more"
    )


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"no json", b"[]", b"{}", b"\xff", b'{"passed": "yes"}'),
        *(b'{"passed": false, "checks": 1}', b'{"passed": false, "checks": ["chat"]}'),
    ],
)
def test_what_is_no_report_has_not_passed(body: bytes) -> None:
    report = read_report("chat-smoke-1a/a.json", body)

    assert report["passed"] is False
    assert "chat-smoke-1a/a.json is not a report" in job_outcome(JOB, [report] * 3).why


def test_a_model_has_answered_when_each_of_its_jobs_has() -> None:
    bench = CheckJob("chat", "chat-bench-1a", "models", attempts=1)
    other = CheckJob("embed", "embed-smoke-1a", "models", attempts=3)

    assert answering(
        [JobOutcome(JOB, "answered"), JobOutcome(bench, "pending"), JobOutcome(other, "answered")]
    ) == (
        1,
        2,
    )
    assert answering([]) == (0, 0)


@dataclass
class Clock:
    """Time passes in pauses alone."""

    now: float = 1000.0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _in_turn(*answers: list[Observation]) -> Callable[[], list[Observation]]:
    """Answers one after the other, the last one for ever."""
    turns = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda: next(turns)


OK = Observation("tree", "10 files", ())
ASKED = Observation("models", "0 of 1 models answered", (), pending=(PENDING,))
ANSWERED = Observation("models", "1 of 1 models answered", ())
FAILED = Observation("models", "0 of 1 models answered", ("chat: every attempt failed",))
DEGRADED = Observation("add-ons", "1 add-ons", ("coredns is DEGRADED",), transient=True)
UNDELIVERED = Observation("tree", "10 files", ("a.yaml was not delivered",))


def test_it_ends_when_every_model_has_answered(clock: Clock) -> None:
    told: list[float] = []
    ask = _in_turn([OK, ASKED], [OK, ASKED], [OK, ANSWERED])

    answers = wait(ask, 600, clock=clock, sleep=clock.sleep, told=lambda _, left: told.append(left))

    assert answers == [OK, ANSWERED]
    assert clock.pauses == [POLL_SECONDS] * 2
    assert told == [600, 600 - POLL_SECONDS]


def test_when_the_time_is_over_what_is_pending_has_failed_and_says_where_to_look(clock: Clock) -> None:
    answers = wait(_in_turn([OK, ASKED]), 40, clock=clock, sleep=clock.sleep)

    assert clock.pauses == [15, 15, 10]
    assert answers[0] == OK
    assert answers[1].outcome == "failed"
    assert answers[1].pending == ()
    assert answers[1].problems == ("chat: chat-smoke-1a has not reported",)
    assert answers[1].look == (
        "kubectl -n flux-system get kustomizations",
        "kubectl -n models logs job/chat-smoke-1a",
    )


@pytest.mark.parametrize("failed", [FAILED, UNDELIVERED])
def test_what_has_failed_for_good_ends_it_at_once(failed: Observation, clock: Clock) -> None:
    assert wait(_in_turn([failed, ASKED]), 600, clock=clock, sleep=clock.sleep) == [failed, ASKED]
    assert clock.pauses == []


def test_what_may_mend_is_waited_for(clock: Clock) -> None:
    ask = _in_turn([DEGRADED, ANSWERED], [OK, ANSWERED])
    assert wait(ask, 600, clock=clock, sleep=clock.sleep) == [OK, ANSWERED]

    never = wait(_in_turn([DEGRADED, ANSWERED]), 600, clock=clock, sleep=clock.sleep)
    assert [each.outcome for each in never] == ["failed", "passed"]


def test_clients_are_made_anew_well_before_their_credentials_end(clock: Clock) -> None:
    made: list[float] = []

    def make() -> Account:
        made.append(clock.now)
        return Account(None, "us-east-2")

    account = renewed(make, clock=clock)
    for _ in range(600):  # 150 minutes
        account()
        clock.now += POLL_SECONDS

    assert len(made) == 5
    assert max(b - a for a, b in itertools.pairwise(made)) == RENEWAL_SECONDS
    assert RENEWAL_SECONDS <= 3600 / 2  # an hour is the longest that a role lives which another one assumed


@pytest.mark.parametrize("wrong", ["", "10", "1.5h", "-5m", "0s", "2 h", "soon", "150min"])
def test_a_duration_that_is_none_is_a_usage_error(wrong: str, modelyard: Modelyard) -> None:
    answer = modelyard("verify", "--env", "local", f"--wait={wrong}")

    assert answer.code == 64
    assert answer.out == ""
    (line,) = answer.err.splitlines()
    assert f"--wait '{wrong}' is no duration; write a whole number above 0 with a unit" in line
