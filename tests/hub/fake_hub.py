"""A Hugging Face Hub in this process, which huggingface_hub itself talks to.

It answers the paths that huggingface_hub 2.4 asks: `/api/models/ID/revision/REF` with the files' sizes,
`/api/models/ID/tree/REF`, and `/ID/resolve/REF/FILE` with HEAD, GET and ranges, commit and ETag. Of a file of
weights only the header is stored: the rest is a length.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

TOKEN = "hf_" + "a" * 34
"""The only token that the Hub knows."""

_API = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)(?:/revision/(?P<ref>[^/]+))?")
_TREE = re.compile(r"/api/models/(?P<id>[^/]+/[^/]+)/tree/(?P<ref>[^/]+)")
_FILE = re.compile(r"/(?P<id>[^/]+/[^/]+)/resolve/(?P<ref>[^/]+)/(?P<file>.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")

Tensors = Mapping[str, tuple[str, Sequence[int]]]


@dataclass(frozen=True)
class Sparse:
    """A file that begins with `head` and has `size` bytes."""

    head: bytes
    size: int

    def part(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        found = self.head[start:end]
        return found + bytes(max(0, end - start - len(found)))


@dataclass
class Repository:
    """`refs`: commits by branch and tag. `gated`: needs the token."""

    files: dict[str, Sparse]
    refs: dict[str, str] = field(default_factory=lambda: {"main": "c" * 40})
    gated: bool = False
    admits: bool = True
    card: dict[str, Any] = field(default_factory=dict)
    pipeline_tag: str | None = "text-generation"

    def commit(self, ref: str) -> str | None:
        return ref if ref in self.refs.values() else self.refs.get(ref)


def text_file(content: object) -> Sparse:
    """A small file: bytes as they are, anything else as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Sparse(data, len(data))


BYTES = {"F32": 4, "I32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1}


def safetensors_file(tensors: Tensors) -> Sparse:
    """A safetensors file whose numbers are all zero."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (kind, shape) in tensors.items():
        size = BYTES[kind]
        for side in shape:
            size *= side
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return Sparse(struct.pack("<Q", len(text)) + text, 8 + len(text) + end)


def checkpoint_files(config: object, tensors: Tensors, shards: int = 1) -> dict[str, Sparse]:
    """config.json, and the tensors in one file or in `shards` with an index."""
    files = {"config.json": text_file(config)}
    if shards == 1:
        return {**files, "model.safetensors": safetensors_file(tensors)}
    names = sorted(tensors)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        own = {name: tensors[name] for name in names[number::shards]}
        files[file] = safetensors_file(own)
        weight_map |= dict.fromkeys(own, file)
    files["model.safetensors.index.json"] = text_file({"metadata": {}, "weight_map": weight_map})
    return files


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are no news: a reader of a header takes no more than that."""


@dataclass
class FakeHub:
    """`asked`: method, path and range of every request so far."""

    address: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    failing: int = 0
    """Status of every answer, if not 0."""
    ignores_ranges: bool = False


@contextmanager
def hub() -> Iterator[FakeHub]:
    """A Hub on this machine, empty."""
    fake = FakeHub()

    class Handler(_Handler):
        hub = fake

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    fake.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def _etag(file: Sparse) -> str:
    return hashlib.sha1(file.head, usedforsecurity=False).hexdigest()


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        self.hub.asked.append((self.command, path, self.headers.get("Range", "")))
        try:
            status, body, headers = self._found(path)
        except _Refused as refused:
            status, body = refused.status, json.dumps({"error": refused.message}).encode()
            headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.message}
        self.send_response(status)
        length = {} if "Content-Length" in headers else {"Content-Length": str(len(body))}
        for key, value in {**headers, **length}.items():
            self.send_header(key, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _found(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        if self.hub.failing:
            raise _Refused(self.hub.failing, "", "out of order")
        if (match := _API.fullmatch(path)) is not None:
            return self._info(match["id"], unquote(match["ref"] or "main"))
        if (match := _TREE.fullmatch(path)) is not None:
            return self._tree(match["id"], unquote(match["ref"]))
        if (match := _FILE.fullmatch(path)) is not None:
            return self._file(match["id"], unquote(match["ref"]), unquote(match["file"]))
        raise _Refused(404, "", "Not Found")

    def _repository(self, name: str, ref: str) -> tuple[Repository, str]:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and token != TOKEN:
            raise _Refused(401, "", "Invalid credentials in Authorization header")
        found = self.hub.repositories.get(name)
        if found is None:
            raise _Refused(404 if token else 401, "RepoNotFound", "Repository not found")
        commit = found.commit(ref)
        if commit is None:
            raise _Refused(404, "RevisionNotFound", f"Invalid rev id: {ref}")
        return found, commit

    def _info(self, name: str, ref: str) -> tuple[int, bytes, dict[str, str]]:
        found, commit = self._repository(name, ref)
        body = {
            "id": name,
            "sha": commit,
            "gated": "manual" if found.gated else False,
            "private": False,
            "tags": [],
            "pipeline_tag": found.pipeline_tag,
            "cardData": found.card,
            "siblings": [{"rfilename": file, "size": each.size} for file, each in found.files.items()],
        }
        return 200, json.dumps(body).encode(), {"Content-Type": "application/json"}

    def _tree(self, name: str, ref: str) -> tuple[int, bytes, dict[str, str]]:
        found, _ = self._repository(name, ref)
        rows = [
            {"type": "file", "path": file, "size": each.size, "oid": _etag(each)}
            for file, each in found.files.items()
        ]
        return 200, json.dumps(rows).encode(), {"Content-Type": "application/json"}

    def _file(self, name: str, ref: str, file: str) -> tuple[int, bytes, dict[str, str]]:
        found, commit = self._repository(name, ref)
        if found.gated:
            if "Authorization" not in self.headers:
                raise _Refused(401, "GatedRepo", "Access to this model is restricted")
            if not found.admits:
                raise _Refused(403, "GatedRepo", "Your request awaits a review")
        content = found.files.get(file)
        if content is None:
            raise _Refused(404, "EntryNotFound", "Entry not found")
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{_etag(content)}"',
            "Accept-Ranges": "bytes",
        }
        asked = _RANGE.fullmatch(self.headers.get("Range", ""))
        if self.command == "HEAD":
            return 200, b"", {**headers, "Content-Length": str(content.size)}
        if asked is None or self.hub.ignores_ranges:
            return 200, content.part(0, content.size), headers
        start, end = int(asked[1]), int(asked[2])
        if start >= content.size:
            raise _Refused(416, "", "Range Not Satisfiable")
        body = content.part(start, end - start + 1)
        span = f"bytes {start}-{start + len(body) - 1}/{content.size}"
        return 206, body, {**headers, "Content-Range": span}
