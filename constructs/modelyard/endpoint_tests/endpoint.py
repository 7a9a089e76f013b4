"""What a client knows about an endpoint before it asks, and how it asks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from http.client import HTTPException
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

Task = Literal["generate", "embed", "rerank"]


@dataclass(frozen=True)
class Expectations:
    """What the model's file promises to clients.

    `names`: under which the model is asked for, the first one first. `max_model_len`: None where it is not
    known. `reads_names`: the server refuses a name that it does not know. `forces_functions`: a client can
    force a call by the function's name. `dimension`: numbers of one embedding; None where any number is
    right.
    """

    model: str
    names: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    task: Task = "generate"
    reads_names: bool = True
    forces_functions: bool = True
    max_model_len: int | None = None
    dimension: int | None = None
    tools: bool = False
    reasoning: bool = False
    needs_key: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Expectations:
        """The inverse of `to_json`.

        Raises:
            ValueError: `text` is not what `to_json` writes.
        """
        try:
            data = json.loads(text)
        except RecursionError:
            raise ValueError("not the expectations of an endpoint") from None
        if (
            not isinstance(data, Mapping)
            or not {"model", "names"} <= set(data)
            or not set(data) <= {field.name for field in fields(cls)}
        ):
            raise ValueError("not the expectations of an endpoint")
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        return cls(**known)


@dataclass(frozen=True)
class EndpointAddress:
    """An endpoint: `url` ends with `/v1`; `timeout` is in seconds, of one request."""

    url: str
    key: str | None = None
    timeout: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", self.url.rstrip("/"))

    def client(self) -> Any:
        """An OpenAI client that tries once; a context manager that closes its connections.

        Raises:
            ModuleNotFoundError: the package `openai` is not installed.
        """
        from openai import OpenAI

        return OpenAI(
            base_url=self.url,
            api_key=self.key or "none",  # the client refuses to start without one
            timeout=self.timeout,
            max_retries=0,
        )

    def status(self, path: str, *, key: str | None) -> int:
        """The status of a plain GET below the url; with no key, nothing is sent in its place.

        Raises:
            OSError: nobody answers.
        """
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            with urlopen(Request(f"{self.url}{path}", headers=headers), timeout=self.timeout) as response:
                return int(response.status)
        except HTTPError as error:
            error.close()
            return error.code


def wait_until_up(target: EndpointAddress, seconds: float) -> str | None:
    """Ask for the models until somebody answers, for `seconds` at the most; why nobody did, or None.

    A server that is not ready refuses connections (vLLM) or answers 503 (llama-server).
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            status = target.status("/models", key=target.key)
            if status not in (502, 503, 504):
                return None
            reason = f"HTTP {status}"
        except (URLError, HTTPException, OSError) as error:
            reason = str(getattr(error, "reason", None) or error)
        if time.monotonic() >= deadline:
            return f"{target.url} does not answer: {reason}"
        time.sleep(min(5.0, max(0.1, deadline - time.monotonic())))
