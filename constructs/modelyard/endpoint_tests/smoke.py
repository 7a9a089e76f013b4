"""The smoke test of an endpoint: every check that applies, all in one run."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modelyard.endpoint_tests import checks, embedding_checks, outcome
from modelyard.endpoint_tests.checks import Check, CheckedEndpoint, Failed, Skipped
from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations, Task, wait_until_up

SCHEMA_VERSION = 1
Outcome = Literal["passed", "failed", "skipped"]

_EVERYWHERE: dict[str, Check] = {
    "models": checks.models,
    "authentication": checks.authentication,
    "unknown-model": checks.unknown_model,
}
CHECKS: Mapping[Task, Mapping[str, Check]] = {
    "generate": {
        **_EVERYWHERE,
        "completion": checks.completion,
        "served-names": checks.every_name,
        "adapters": checks.adapters,
        "chat": checks.chat,
        "same-answer": checks.same_answer,
        "streaming": checks.streaming,
        "structured-output": checks.structured_output,
        "tool-call": checks.tool_call,
        "reasoning": checks.reasoning,
        "context-limit": checks.context_limit,
    },
    "embed": {
        **_EVERYWHERE,
        "embeddings": embedding_checks.embeddings,
        "input-limit": embedding_checks.input_limit,
    },
    "rerank": {**_EVERYWHERE, "rerank": embedding_checks.rerank},
}


@dataclass(frozen=True)
class CheckResult:
    """`reason`: why the check failed or was skipped; empty for one that passed."""

    name: str
    outcome: Outcome
    reason: str
    seconds: float


@dataclass(frozen=True)
class SmokeResult:
    model: str
    url: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """Whether something was checked, and none of it failed."""
        outcomes = {result.outcome for result in self.results}
        return "passed" in outcomes and "failed" not in outcomes

    def as_json(self) -> dict[str, Any]:
        return {
            "schemaVersion": SCHEMA_VERSION,
            "kind": "Smoke",
            "model": self.model,
            "url": self.url,
            "passed": self.passed,
            "checks": [
                {
                    "name": result.name,
                    "outcome": result.outcome,
                    "reason": result.reason or None,
                    "seconds": round(result.seconds, 3),
                }
                for result in self.results
            ],
        }


def run_checks(expected: Expectations, target: EndpointAddress, *, wait: float = 0) -> SmokeResult:
    """Every check of the model's task; `wait` in seconds for a server that is still starting."""
    started = time.monotonic()
    reason = wait_until_up(target, wait)
    up = CheckResult("reachable", "failed" if reason else "passed", reason or "", time.monotonic() - started)
    wanted = CHECKS[expected.task]
    if reason:
        rest = [CheckResult(name, "skipped", "the endpoint does not answer", 0.0) for name in wanted]
    else:
        rest = [_result(name, check, expected, target) for name, check in wanted.items()]
    return SmokeResult(expected.model, target.url, (up, *rest))


def _result(name: str, check: Check, expected: Expectations, target: EndpointAddress) -> CheckResult:
    """The check with a client of its own: a connection that idled since the last check may be closed."""
    started = time.monotonic()
    outcome: Outcome = "failed"
    try:
        with target.client() as client:
            check(CheckedEndpoint(target, expected, client))
    except Skipped as why:
        outcome, reason = "skipped", str(why)
    except Failed as why:
        reason = str(why)
    except Exception as error:  # noqa: BLE001 - whatever it makes the client do is a failed check; the rest still run
        reason = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
    else:
        outcome, reason = "passed", ""
    return CheckResult(name, outcome, reason, time.monotonic() - started)


def main() -> int:
    """What the job runs: settings from its environment, lines for people, the document last and in the
    bucket."""
    result = run_checks(
        Expectations.from_json(os.environ["EXPECTATIONS"]),
        EndpointAddress(os.environ["URL"], os.environ.get("API_KEY"), float(os.environ["TIMEOUT"])),
        wait=float(os.environ["WAIT"]),
    )
    for each in result.results:
        print(f"{each.outcome:8} {each.name:18} {each.seconds:6.1f} s  {each.reason}", flush=True)
    print(json.dumps(result.as_json()), flush=True)
    outcome.publish(result.as_json())
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
