"""Load on an endpoint, by LLMeter: so many clients, each asking one request after the other.

Three things are ours. Prompts are all different, or prefix caching would answer them. Times are of every
piece of a stream that carries anything, reasoning included: LLMeter counts from the first piece of content.
And a stream without a finish reason is an error, not a short answer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from modelyard.endpoint_tests.endpoint import EndpointAddress
from modelyard.endpoint_tests.measurement import Request

_WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "knoll",
    "larch",
)
_PROBE_WORDS = 64


@dataclass(frozen=True)
class RequestedLoad:
    """What is asked. `requests` in all at each level, but one a client at least; with `seconds` as many as
    that allows."""

    prompt_tokens: int = 256
    output_tokens: int = 64
    requests: int = 32
    seconds: float | None = None
    seed: int = 0


def generator() -> dict[str, str]:
    """Name and version of what makes the load."""
    return {"name": "llmeter", "version": version("llmeter")}


class Prompts:
    """Prompts of about as many tokens as wanted; what a word costs is learned from the server's own count."""

    def __init__(self, workload: RequestedLoad) -> None:
        self._random = random.Random(workload.seed)
        self._wanted = workload.prompt_tokens
        self._words = _PROBE_WORDS
        self._numbers = itertools.count(1)

    def next(self) -> str:
        # The number comes first: prompts that differ at their end would still share cached blocks.
        words = (self._random.choice(_WORDS) for _ in range(max(1, self._words - 1)))
        return f"{next(self._numbers)} {' '.join(words)}"

    def learn(self, counted: Request) -> None:
        """Set the length by a request of `_PROBE_WORDS` words and one of a single word before it."""
        if counted.prompt_tokens > 0:
            self._words = max(1, round(self._wanted * _PROBE_WORDS / counted.prompt_tokens))


@cache
def _endpoint_class() -> Any:
    # Set before the import, which reads it; the logger would print a stack for every error, which we count.
    os.environ.setdefault("LLMETER_DISABLE_ALL_PROGRESS_BARS", "1")
    logging.getLogger("llmeter").setLevel(logging.CRITICAL)
    from llmeter.endpoints.openai import (  # type: ignore[import-untyped]
        OpenAICompletionStreamEndpoint,
    )

    class TimedEndpoint(OpenAICompletionStreamEndpoint):  # type: ignore[misc]
        """One model, asked with ever new prompts."""

        prompts: Prompts

        def prepare_payload(self, payload: dict[str, Any]) -> dict[str, Any]:
            asked = {**payload, "messages": [{"role": "user", "content": self.prompts.next()}]}
            return dict(super().prepare_payload(asked))

        def process_raw_response(self, raw_response: Iterable[Any], start_t: float, response: Any) -> None:
            times: list[float] = []
            reason = None
            for event in raw_response:
                if event.choices:
                    reason = event.choices[0].finish_reason or reason
                    if _carries(event.choices[0].delta):
                        times.append(time.perf_counter())
                if event.usage is not None:
                    response.num_tokens_input = event.usage.prompt_tokens
                    response.num_tokens_output = event.usage.completion_tokens
            response.annotations["times"] = [start_t, *times]
            if reason is None:
                raise ConnectionError("the stream was cut off: it ends without a finish reason")
            if not response.num_tokens_output:
                raise ValueError("the answer has no tokens, or reports no usage")
            response.response_text = ""
            response.time_to_first_token = times[0] - start_t if times else None
            response.time_to_last_token = time.perf_counter() - start_t

    return TimedEndpoint


def _carries(delta: Any) -> bool:
    """Whether a piece holds a token. A token may be a part of a letter: the piece is there, and its text is
    empty."""
    texts = [getattr(delta, name, None) for name in ("content", "reasoning", "reasoning_content")]
    opening = getattr(delta, "role", None) is not None
    return any(texts) or (not opening and any(text is not None for text in texts))


class Load:
    """Asks `name` at `target`; the first request, which is not counted, sets the length of the prompts."""

    def __init__(self, target: EndpointAddress, name: str, workload: RequestedLoad) -> None:
        self._workload = workload
        self._timeout = target.timeout
        self._endpoint = _endpoint_class()(
            name, base_url=target.url, api_key=target.key or "none", timeout=target.timeout, max_retries=0
        )
        self._endpoint.prompts = Prompts(workload)
        [probe] = self.level(1, requests=1)
        self._endpoint.prompts.learn(probe)

    def level(self, concurrency: int, *, requests: int | None = None) -> tuple[Request, ...]:
        """Everything that was asked with `concurrency` clients."""
        workload = self._workload
        wanted = requests or workload.requests
        bound = workload.seconds is not None and requests is None
        payload = {
            "messages": [],
            "max_tokens": workload.output_tokens,
            "temperature": 0,
            "extra_body": {"ignore_eos": True},
        }

        async def run() -> Any:
            from llmeter.runner import Runner  # type: ignore[import-untyped]

            runner = Runner(
                endpoint=self._endpoint,
                payload=payload,
                clients=concurrency,
                timeout=max(60.0, self._timeout * 2),
                disable_per_client_progress_bar=True,
                disable_clients_progress_bar=True,
                progress_bar_stats={},
            )
            if bound:
                return await runner.run(run_duration=workload.seconds)
            return await runner.run(n_requests=-(-wanted // concurrency))

        return tuple(_request(response) for response in asyncio.run(run()).responses)


def _request(response: Any) -> Request:
    times = response.annotations.get("times") or [0.0]
    start, *pieces = times
    if response.error is not None or response.time_to_last_token is None:
        return Request(start, pieces[-1] if pieces else start, error=(response.error or "no answer")[:300])
    return Request(
        started=start,
        ended=start + response.time_to_last_token,
        first=response.time_to_first_token,
        gaps=tuple(after - before for before, after in itertools.pairwise(pieces)),
        prompt_tokens=response.num_tokens_input or 0,
        output_tokens=response.num_tokens_output,
    )
