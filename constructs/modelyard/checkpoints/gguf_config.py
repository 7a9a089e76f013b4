"""A config.json from the metadata of a GGUF file, for the architectures whose metadata says enough."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from modelyard.checkpoints.gguf_header import GgufHeader
from modelyard.reading import short
from modelyard.reading.table import read_table


class NoConfig(ValueError):
    """The metadata does not say what the model is made of."""


@cache
def _table() -> Mapping[str, Any]:
    return read_table(files("modelyard.checkpoints").joinpath("data", "gguf_models.yaml"))


def config_of(header: GgufHeader) -> dict[str, Any]:
    """The fields of a config.json that `header` states.

    Raises:
        NoConfig: the architecture is another one, or a key is missing.
    """
    name = str(header.metadata.get("general.architecture"))
    kind = _table()["architectures"].get(name)
    experts = header.metadata.get(f"{name}.expert_count")
    if kind is None or (name == "llama" and experts):
        raise NoConfig(f"the metadata of a {short(name, 30)} GGUF file does not describe it whole")
    stated = {
        field: header.metadata[f"{name}.{key}"]
        for field, key in _table()["fields"].items()
        if f"{name}.{key}" in header.metadata
    }
    if missing := [field for field in _table()["required"] if field not in stated]:
        raise NoConfig(f"its metadata lacks {name}.{_table()['fields'][missing[0]]}")
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding[1]) != 2:
        raise NoConfig("it has no token_embd.weight")
    return {
        "architectures": [kind],
        **stated,
        "vocab_size": embedding[1][0],
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "torch_dtype": "bfloat16",
    }
