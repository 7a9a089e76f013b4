"""A local OpenAI endpoint with a few answers and, on request, one defect."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.contract.fake_server import answering

KEY = "key-of-the-clients"
MODELS = ("tiny", "acme/tiny", "legal")
LENGTH = 512
DIMENSION = 4
PATIENCE_S = 60  # for clients that never come


class FakeOpenAI(ThreadingHTTPServer):
    """`broken` names the defect; `delay` is the seconds between two pieces of a stream; `says` is the answer.

    Nobody is answered before `together` requests have been here at the same time: that many clients then run
    at once on a machine of any speed.
    """

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int] = ("127.0.0.1", 0),
        *,
        broken: str = "",
        key: str | None = KEY,
        delay: float = 0.0,
        models: Sequence[str] = MODELS,
        length: int = LENGTH,
        says: str = "red green",
    ) -> None:
        super().__init__(address, _Handler)
        self.broken, self.key, self.delay = broken, key, delay
        self.models, self.length, self.says = tuple(models), length, says
        self.lock = threading.Condition()
        self.together = 1
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.running = self.most_running = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are no news."""


def serving(**options: Any) -> AbstractContextManager[FakeOpenAI]:
    return answering(FakeOpenAI(**options))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # as the real servers: connections stay open
    server: FakeOpenAI

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path in ("/health", "/metrics"):
            self._send(200, {})
            return
        if self.path != "/v1/models":
            self._send(404, {"error": {"message": "Not Found"}})
            return
        if self._refused():
            return
        length = self.server.length // 2 if self.server.broken == "length" else self.server.length
        models = self.server.models
        names = ("another", *models[1:]) if self.server.broken == "model id" else models
        rows = [
            {"id": n, "object": "model", "created": 0, "owned_by": "x", "max_model_len": length}
            for n in names
        ]
        self._send(200, {"object": "list", "data": rows})

    def do_POST(self) -> None:
        with self.server.lock:
            self.server.running += 1
            self.server.most_running = max(self.server.most_running, self.server.running)
            self.server.lock.notify_all()
            self.server.lock.wait_for(lambda: self.server.most_running >= self.server.together, PATIENCE_S)
        try:
            self._post()
        finally:
            with self.server.lock:
                self.server.running -= 1

    def _post(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/v1")
        self.server.asked.append((path, body))
        broken = self.server.broken
        if self._refused():
            return
        if broken == f"500 {path}" or broken == "500 everywhere":
            self._send(500, {"error": {"message": "EngineCore encountered an issue"}})
        elif body["model"] not in self.server.models and broken != "any model":
            self._send(404, {"error": {"message": "no such model"}})
        elif body["model"] == "legal" and broken == "adapter":
            self._send(400, {"error": {"message": "adapter not loaded"}})
        elif _tokens(body) > self.server.length and broken != "any length":
            self._send(400, {"error": {"message": "too long"}})
        else:
            {
                "/chat/completions": self._chat,
                "/completions": self._complete,
                "/embeddings": self._embed,
                "/rerank": self._rerank,
            }[path](body)

    def _refused(self) -> bool:
        right = self.server.key is None or self.headers.get("Authorization") == f"Bearer {self.server.key}"
        if right or self.server.broken == "open":
            return False
        self._send(401, {"error": {"message": "Unauthorized"}})
        return True

    def _complete(self, body: dict[str, Any]) -> None:
        text = "" if self.server.broken == "empty completion" else self.server.says
        choice = {"index": 0, "text": text, "finish_reason": "length", "logprobs": None}
        self._send(200, self._whole("text_completion", choice))

    def _chat(self, body: dict[str, Any]) -> None:
        broken = self.server.broken
        if body.get("stream"):
            self._stream(body)
            return
        message: dict[str, Any] = {"role": "assistant", "content": self.server.says}
        if broken == "restless":
            message["content"] = f"answer {len(self.server.asked)}"
        if broken == "mixed reasoning" and "response_format" not in body:
            message["content"] = "<think>hm</think> red"
        if "response_format" in body:
            message["content"] = '{"city": "Lyon"}' if broken == "schema" else '{"city": "Rome"}'
        if "tools" in body and broken != "no tool call":
            arguments = '{"city": "Ro' if broken == "tool arguments" else '{"city": "Rome"}'
            function = {"name": "weather", "arguments": arguments}
            message |= {
                "content": None,
                "tool_calls": [{"id": "1", "type": "function", "function": function}],
            }
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, self._whole("chat.completion", choice))

    def _whole(self, kind: str, choice: dict[str, Any]) -> dict[str, Any]:
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        whole = {
            "id": "1",
            "object": kind,
            "created": 0,
            "model": self.server.models[0],
            "choices": [choice],
            "usage": usage,
        }
        if self.server.broken == f"no usage of {kind}":
            del whole["usage"]
        return whole

    def _stream(self, body: dict[str, Any]) -> None:
        broken = self.server.broken
        count = 1 if broken == "one piece" else min(8, body["max_tokens"])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(count):
            time.sleep(self.server.delay)
            last = number == count - 1 and broken != "cut off"
            self._event(
                choices=[
                    {
                        "index": 0,
                        "delta": {"content": f"w{number} "},
                        "finish_reason": "length" if last else None,
                    }
                ]
            )
        if broken == "cut off":
            return
        if broken != "no usage in stream":
            prompt = _tokens(body)
            usage = {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}
            self._event(choices=[], usage=usage)
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, **fields: Any) -> None:
        event = {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.server.models[0],
            **fields,
        }
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _embed(self, body: dict[str, Any]) -> None:
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        size = DIMENSION * 2 if self.server.broken == "dimension" else DIMENSION
        vectors = [[float((len(text) * (i + 1)) % 7 + 1) for i in range(size)] for text in texts]
        if self.server.broken == "zero vectors":
            vectors = [[0.0] * size for _ in texts]
        if self.server.broken == "one vector":
            vectors = [[1.0] * size for _ in texts]
        rows = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        self._send(200, {"object": "list", "model": "tiny", "data": rows, "usage": usage})

    def _rerank(self, body: dict[str, Any]) -> None:
        scores = [0.9, 0.1]
        if self.server.broken == "unsorted":
            scores.reverse()
        if self.server.broken == "one score":
            scores = [0.5, 0.5]
        rows = [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]
        self._send(200, {"id": "1", "results": rows})

    def _send(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _tokens(body: dict[str, Any]) -> int:
    """A token a word, over whatever the body holds."""
    texts = [body.get("prompt", ""), body["input"] if isinstance(body.get("input"), str) else ""]
    texts += [message["content"] for message in body.get("messages", [])]
    return sum(len(text.split()) for text in texts)
