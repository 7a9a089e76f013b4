"""What every endpoint must do, and what one that generates text must do, each as one check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from modelyard.endpoint_tests.endpoint import EndpointAddress, Expectations

PROMPT = "Name three colours of the rainbow."
_CITIES = ["Paris", "Rome"]
# Values of a closed list: a grammar that holds to them ends the answer, whatever the model would rather say.
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": _CITIES}},
    "required": ["city"],
    "additionalProperties": False,
}
_MARKS = ("<think>", "</think>", "<|channel|>")


class Failed(Exception):
    """The endpoint does not do what it should."""


class Skipped(Exception):
    """There is nothing to check; the text says why."""


@dataclass(frozen=True)
class CheckedEndpoint:
    """Who is asked, with which OpenAI client, and what is expected."""

    target: EndpointAddress
    expected: Expectations
    client: Any

    @property
    def name(self) -> str:
        return self.expected.names[0]

    def chat(self, **asked: Any) -> Any:
        """A chat completion; greedy, so that what is checked does not depend on chance."""
        messages = [{"role": "user", "content": PROMPT}]
        settings = {"model": self.name, "messages": messages, "max_tokens": 16, "temperature": 0}
        return self.client.chat.completions.create(**(settings | asked))

    def complete(self, **asked: Any) -> Any:
        settings = {"model": self.name, "prompt": PROMPT, "max_tokens": 16, "temperature": 0}
        return self.client.completions.create(**(settings | asked))


Check = Callable[[CheckedEndpoint], None]


def require(condition: object, message: str) -> None:
    if not condition:
        raise Failed(message)


@contextmanager
def refused(status: int, what: str) -> Iterator[None]:
    """Fails unless what happens inside is answered with `status`."""
    from openai import APIStatusError

    try:
        yield
    except APIStatusError as error:
        require(error.status_code == status, f"{what}: HTTP {error.status_code} instead of {status}")
    else:
        raise Failed(f"{what} was answered instead of HTTP {status}")


def models(subject: CheckedEndpoint) -> None:
    """Every name and adapter is listed, with the planned length."""
    expected = subject.expected
    listed = {model.id: model for model in subject.client.models.list()}
    missing = [name for name in (*expected.names, *expected.adapters) if name not in listed]
    require(not missing, f"not listed: {', '.join(missing)}; listed: {', '.join(listed) or 'nothing'}")
    if expected.max_model_len is None:
        return
    lengths = {getattr(listed[name], "max_model_len", None) for name in expected.names}
    require(
        lengths == {expected.max_model_len},
        f"max_model_len is {lengths.pop() if len(lengths) == 1 else lengths}, planned {expected.max_model_len}",
    )


def authentication(subject: CheckedEndpoint) -> None:
    """The key is needed, and another one does not do."""
    if not subject.expected.needs_key:
        raise Skipped("the model has no access.apiKey")
    for what, key in (("no key", None), ("a wrong key", "wrong-" + "0" * 16)):
        status = subject.target.status("/models", key=key)
        require(status == 401, f"{what} gives HTTP {status} instead of 401")


def unknown_model(subject: CheckedEndpoint) -> None:
    if not subject.expected.reads_names:
        raise Skipped("the engine serves one model and does not look at the name")
    with refused(404, "an unknown model"):
        if subject.expected.task == "generate":
            subject.client.completions.create(model="no-such-model", prompt=PROMPT, max_tokens=1)
        else:
            subject.client.embeddings.create(model="no-such-model", input=PROMPT)


def completion(subject: CheckedEndpoint) -> None:
    _answered(subject.complete(), "the completion")


def every_name(subject: CheckedEndpoint) -> None:
    """The other names of the same model."""
    others = subject.expected.names[1:]
    if not others:
        raise Skipped("the model has one name")
    for name in others:
        _answered(subject.complete(model=name, max_tokens=4), f"the completion of {name}")


def adapters(subject: CheckedEndpoint) -> None:
    if not subject.expected.adapters:
        raise Skipped("the model has no adapters")
    for (
        name
    ) in subject.expected.adapters:  # an adapter may be right to say nothing, but not to compute nothing
        _counted(subject.complete(model=name, max_tokens=4), f"the completion of adapter {name}")


def chat(subject: CheckedEndpoint) -> None:
    answer = subject.chat()
    _counted(answer, "the chat completion")
    choice = answer.choices[0]
    require(choice.message.role == "assistant", f"the answer's role is {choice.message.role}")
    require(_said(choice.message), "the answer is empty")
    _reasoned(choice.finish_reason, ("stop", "length"), "the chat completion")


def same_answer(subject: CheckedEndpoint) -> None:
    """Greedy answers agree. Batching may tip a near tie once; two of three must be the same."""
    seen: list[str] = []
    for _ in range(3):
        text = _said(subject.chat(seed=0).choices[0].message)
        if text in seen:
            return
        seen.append(text)
    raise Failed("three answers to one prompt at temperature 0 are all different")


def streaming(subject: CheckedEndpoint) -> None:
    """Pieces arrive, they add up to something, and the stream says why it ended and what it used."""
    pieces, reason, usage = [], None, None
    for event in subject.chat(stream=True, stream_options={"include_usage": True}, max_tokens=32):
        usage = event.usage or usage
        for choice in event.choices:
            reason = choice.finish_reason or reason
            if text := _said(choice.delta):
                pieces.append(text)
    require(reason, "the stream was cut off: it ends without a finish reason")
    require(len(pieces) > 1, f"the answer came in {len(pieces)} piece{'s' * (len(pieces) != 1)}")
    require("".join(pieces).strip(), "the pieces hold nothing but spaces")
    require(usage is not None and usage.completion_tokens > 0, "the stream reports no usage")


def context_limit(subject: CheckedEndpoint) -> None:
    length = subject.expected.max_model_len
    if length is None:
        raise Skipped("the length is not known")
    with refused(400, f"a prompt of more than {length} tokens"):
        subject.complete(prompt="one " * (length + 1), max_tokens=1)


def structured_output(subject: CheckedEndpoint) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": _SCHEMA, "strict": True}}
    message = (
        subject.chat(
            messages=[{"role": "user", "content": "Which city is the capital of Italy? Answer in JSON."}],
            response_format=wanted,
            max_tokens=_room(subject),
            **_straight(subject),
        )
        .choices[0]
        .message
    )
    _place(message.content or "", "the answer")


def tool_call(subject: CheckedEndpoint) -> None:
    """The one function is called with arguments of its schema: the server's grammar must hold the model to
    it."""
    if not subject.expected.tools:
        raise Skipped("the model has no features.tools")
    # A greedy model may fill its room with the spaces that a grammar allows; chance leads it out.
    for temperature in (0, 1, 1):
        try:
            _call(subject, temperature)
        except Failed as why:
            failure = why
        else:
            return
    raise failure


def _call(subject: CheckedEndpoint, temperature: float) -> None:
    # Without `strict` vLLM holds the call to JSON, and not to the schema.
    function = {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": _SCHEMA,
        "strict": True,
    }
    answer = subject.chat(
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        tools=[{"type": "function", "function": function}],
        tool_choice=_forced(subject),
        temperature=temperature,
        max_tokens=_room(subject),
        **_straight(subject),
    )
    calls = answer.choices[0].message.tool_calls or []
    require(calls, "there is no tool call in the answer")
    require(calls[0].function.name == "weather", f"{calls[0].function.name} was called instead of weather")
    _place(calls[0].function.arguments or "", "the arguments of the call")


def reasoning(subject: CheckedEndpoint) -> None:
    if not subject.expected.reasoning:
        raise Skipped("the model has no features.reasoning")
    content = subject.chat(max_tokens=_room(subject)).choices[0].message.content or ""
    left = [mark for mark in _MARKS if mark in content]
    require(not left, f"the answer holds {', '.join(left)}: reasoning is not split from it")


def _forced(subject: CheckedEndpoint) -> Any:
    """The function by its name, or `required`, which is the same where there is one."""
    if not subject.expected.forces_functions:
        return "required"
    return {"type": "function", "function": {"name": "weather"}}


def _straight(subject: CheckedEndpoint) -> dict[str, Any]:
    """Ask templates that can for no reasoning: a grammar holds only after it, and it may take all the
    room."""
    return (
        {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
        if subject.expected.reasoning
        else {}
    )


def _room(subject: CheckedEndpoint) -> int:
    """Tokens for an answer that a grammar ends, even from a model that thinks first."""
    wanted = 2048 if subject.expected.reasoning else 256
    return min(wanted, (subject.expected.max_model_len or wanted * 2) // 2)


def _place(text: str, what: str) -> None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Failed(f"{what} is not JSON: {text[:60]!r}") from None
    require(
        isinstance(found, dict) and found.get("city") in _CITIES, f"{what} breaks its schema: {text[:60]!r}"
    )


def _said(message: Any) -> str:
    """Content, or the reasoning before it; engines have two names for that."""
    parts = (getattr(message, key, None) for key in ("reasoning", "reasoning_content", "content"))
    return "".join(part for part in parts if part)


def _answered(answer: Any, what: str) -> None:
    _counted(answer, what)
    require(answer.choices[0].text, f"{what} is empty")
    _reasoned(answer.choices[0].finish_reason, ("stop", "length"), what)


def _counted(answer: Any, what: str) -> None:
    require(answer.choices, f"{what} has no choices")
    usage = answer.usage
    require(usage is not None and usage.completion_tokens > 0, f"{what} reports no usage")
    require(usage.prompt_tokens > 0, f"{what} counts no prompt tokens")


def _reasoned(reason: str | None, right: tuple[str, ...], what: str) -> None:
    require(reason in right, f"{what} ended because of {reason!r}, not {' or '.join(right)}")
