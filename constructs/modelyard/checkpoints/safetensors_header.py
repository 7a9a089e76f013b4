"""The header of a safetensors file: type and shape of each tensor.

A file begins with the header's length as eight bytes, little end first, and the header as JSON
(huggingface.co/docs/safetensors).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from modelyard.checkpoints.tensors import WrongTensors
from modelyard.reading import NotJson, parse_json

_PREFIX = 8
_MOST_VALUES = 1_000_000  # nine a tensor: a whole mixture of experts in one file
_AHEAD = 128 << 10  # holds most headers, so that one request is enough
MOST_BYTES = 32 << 20
"""Maximum length of a header; the libraries that read it refuse 100 MB, and a shard's has up to 2 MiB."""

Read = Callable[[int, int], bytes]
"""`read(start, length)`: that many bytes of a file, or fewer at its end."""


def read_header(read: Read) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each tensor, by name.

    Raises:
        WrongTensors: it is not a safetensors file.
    """
    begin = read(0, _AHEAD)
    length = int.from_bytes(begin[:_PREFIX], "little")
    if len(begin) < _PREFIX or not 2 <= length <= MOST_BYTES:
        raise WrongTensors(f"it is no safetensors file: its header has {length:,} bytes")
    text = begin[_PREFIX : _PREFIX + length]
    if len(text) < length and len(begin) == _AHEAD:
        text += read(_AHEAD, length - len(text))
    if len(text) < length:
        raise WrongTensors("it is no safetensors file: it ends within its header")
    return header_tensors(text)


def header_tensors(text: bytes) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each tensor in the JSON of a header.

    Raises:
        WrongTensors: it is no such JSON.
    """
    try:
        header = parse_json(text, most=_MOST_VALUES)
    except NotJson as problem:
        raise WrongTensors(f"the header is not JSON: {problem}") from None
    if not isinstance(header, dict):
        raise WrongTensors("the header is not a JSON object")
    return {name: _tensor(name, entry) for name, entry in header.items() if name != "__metadata__"}


def _tensor(name: str, entry: Any) -> tuple[str, tuple[int, ...]]:
    kind, shape = (entry.get("dtype"), entry.get("shape")) if isinstance(entry, dict) else (None, None)
    whole = isinstance(shape, list) and all(
        isinstance(size, int) and not isinstance(size, bool) for size in shape
    )
    if not isinstance(kind, str) or not whole:
        raise WrongTensors(f"the header says no type and shape of {name[:60]!r}")
    return kind, tuple(shape or ())
