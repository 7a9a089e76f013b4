"""GGUF files of which only the header is stored."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from modelyard.checkpoints.tensor_types import gguf_types, tensor_bytes
from tests.hub.fake_hub import Sparse

_NUMBERS = {name: number for number, name in gguf_types().items()}


def gguf_file(tensors: Mapping[str, tuple[str, Sequence[int]]], metadata: Mapping[str, object]) -> Sparse:
    """A file of version 3; metadata are whole numbers, texts and lists of texts."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _text(key) + _value(value)
    offset = 0
    for name, (kind, shape) in tensors.items():
        head += _text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", side) for side in reversed(shape))
        head += struct.pack("<IQ", _NUMBERS[kind], offset)
        offset += tensor_bytes(kind, shape)
    return Sparse(head, len(head) + offset)


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def _value(value: object) -> bytes:
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    assert isinstance(value, list)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))


def llama_file(mixture: Mapping[str, str], *, described: bool = True) -> Sparse:
    """Llama 3.1 8B; `mixture`: type by the end of a tensor's name, `*` for the others."""
    hidden, inner, keys, words = 4096, 14336, 1024, 128256
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (words, hidden),
        "output.weight": (words, hidden),
        "output_norm.weight": (hidden,),
    }
    for layer in range(32):
        for name, shape in (
            ("attn_norm", (hidden,)),
            ("attn_q", (hidden, hidden)),
            ("attn_k", (keys, hidden)),
            ("attn_v", (keys, hidden)),
            ("attn_output", (hidden, hidden)),
            ("ffn_norm", (hidden,)),
            ("ffn_gate", (inner, hidden)),
            ("ffn_up", (inner, hidden)),
            ("ffn_down", (hidden, inner)),
        ):
            shapes[f"blk.{layer}.{name}.weight"] = shape
    tensors = {
        name: ("F32" if len(shape) == 1 else mixture.get(name.split(".")[-2], mixture["*"]), shape)
        for name, shape in shapes.items()
    }
    stated: dict[str, object] = {
        "general.architecture": "llama",
        "tokenizer.ggml.tokens": ["<s>", "</s>"],
        "llama.embedding_length": hidden,
        "llama.block_count": 32,
        "llama.feed_forward_length": inner,
        "llama.attention.head_count": 32,
        "llama.attention.head_count_kv": 8,
        "llama.context_length": 131072,
    }
    return gguf_file(tensors, stated if described else {"general.architecture": "mamba"})
