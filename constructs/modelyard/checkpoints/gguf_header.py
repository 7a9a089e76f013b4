"""The header of a GGUF file: its metadata, and type and shape of each tensor.

Little-endian: `GGUF`, version, number of tensors, number of metadata entries, the entries, and for each
tensor its name, dimensions, type and offset (ggml/docs/gguf.md, versions 2 and 3).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelyard.checkpoints.tensor_types import gguf_types
from modelyard.checkpoints.tensors import MOST_DIMENSIONS, MOST_TENSORS, WrongTensors

MOST_BYTES = 64 << 20
"""Maximum length of a header; vocabularies of 260,000 words take 12 MiB."""
_STEP = 4 << 20
_MOST_ENTRIES = 4_096
_MOST_ITEMS = 4_000_000
_LONGEST_KEPT = 4_096
# Sizes and formats of scalar metadata types, by number; 8 is a text, 9 an array.
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_TEXT, _ARRAY = 8, 9

Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class GgufHeader:
    """`metadata`: scalars and texts, without arrays. `tensors`: type and shape by name."""

    metadata: dict[str, Any]
    tensors: dict[str, tuple[str, tuple[int, ...]]]


def read_gguf_header(read: Read) -> GgufHeader:
    """The header of the file that `read(start, length)` reads from; fewer bytes mean its end.

    Raises:
        WrongTensors: it is not a GGUF file, or has an unknown type.
    """
    source = _ReadAhead(read)
    if source.take(4) != b"GGUF":
        raise WrongTensors("it is no GGUF file")
    version = source.number("<I")
    if version not in (2, 3):
        raise WrongTensors(f"it is a GGUF file of version {version}; known are 2 and 3, little-endian")
    count, entries = source.number("<Q"), source.number("<Q")
    if count > MOST_TENSORS or entries > _MOST_ENTRIES:
        raise WrongTensors(f"its header announces {count:,} tensors and {entries:,} entries of metadata")
    metadata = {}
    for _ in range(entries):
        key, kind = source.text(), source.number("<I")
        if kind == _ARRAY:
            _skip_array(source)
        else:
            metadata[key] = source.text() if kind == _TEXT else source.number(_format(kind))
    return GgufHeader(metadata, dict(_tensor(source) for _ in range(count)))


def _skip_array(source: _ReadAhead) -> None:
    inner, length = source.number("<I"), source.number("<Q")
    if length > _MOST_ITEMS:
        raise WrongTensors(f"its header announces a list of {length:,} values")
    if inner == _TEXT:
        for _ in range(length):
            source.skip(source.number("<Q"))
    else:
        source.skip(length * struct.calcsize(_format(inner)))


def _tensor(source: _ReadAhead) -> tuple[str, tuple[str, tuple[int, ...]]]:
    name, dimensions = source.text(), source.number("<I")
    if dimensions > MOST_DIMENSIONS:
        raise WrongTensors(f"{name[:60]!r} has {dimensions:,} dimensions")
    # The fastest dimension comes first; other formats write it last.
    shape = tuple(int(source.number("<Q")) for _ in range(dimensions))[::-1]
    kind = source.number("<I")
    source.skip(8)
    if kind not in gguf_types():
        raise WrongTensors(f"{name[:60]} is of GGUF type {kind}, which is not known")
    return name, (gguf_types()[kind], shape)


def _format(kind: int) -> str:
    if kind not in _SCALARS:
        raise WrongTensors(f"its metadata has a value of type {kind}, which is not known")
    return _SCALARS[kind]


class _ReadAhead:
    """Reads ahead in steps, and never beyond the limit."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._held = bytearray()
        self._at = 0

    def take(self, length: int) -> bytes:
        end = self._at + length
        if end > MOST_BYTES:
            raise WrongTensors(f"its header has more than {MOST_BYTES >> 20} MiB")
        while len(self._held) < end:
            more = self._read(len(self._held), max(_STEP, end - len(self._held)))
            if not more:
                raise WrongTensors("it is no GGUF file: it ends within its header")
            self._held += more
        found = bytes(self._held[self._at : end])
        self._at = end
        return found

    def skip(self, length: int) -> None:
        self.take(length)

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        length = self.number("<Q")
        found = self.take(length)[:_LONGEST_KEPT]
        return found.decode("utf-8", "replace")
