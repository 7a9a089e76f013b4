"""The record of a checkpoint: what its repository says of it, pinned to a revision and kept beside the model
files."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from modelyard.checkpoints.tensors import MOST_DIMENSIONS, MOST_TENSORS, Tensors, WrongTensors, unfolded
from modelyard.spec.document import Document

_LONGEST_STEM = 180

Line = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


Shape = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=MOST_DIMENSIONS)]


def _known_tensors(
    value: dict[str, tuple[str, tuple[int, ...]]],
) -> dict[str, tuple[str, tuple[int, ...]]]:
    try:
        count = sum(unfolded(name, kind, shape).count for name, (kind, shape) in value.items())
        if count > MOST_TENSORS:
            raise WrongTensors(f"{count:,} tensors; {MOST_TENSORS:,} are the most")
    except WrongTensors as problem:
        raise ValueError(f"must be tensors as `modelyard model add` writes them, not {problem}") from None
    return value


FoldedTensors = Annotated[dict[str, tuple[str, Shape]], AfterValidator(_known_tensors)]
"""Type and shape by folded name: `model.layers.{0..35}.mlp.up_proj.weight` stands for 36 tensors."""


class GgufFile(Document):
    """One GGUF file of a repository, all parts of a split model together."""

    tensors: FoldedTensors

    @cached_property
    def tensor_list(self) -> tuple[Tensors, ...]:
        return _unfold(self.tensors)


class CheckpointRecord(Document):
    """What is known of one checkpoint; written by `modelyard model add`, reviewed with the model files."""

    schema_version: Annotated[Literal[1], Field(alias="schema")] = 1
    uri: Annotated[str, Field(max_length=2048)]
    """Where the weights are, as a model file names them."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    """The commit that was read; model files that state no revision serve this one."""
    ref: Line | None = None
    """The branch or tag that was asked for."""
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    """Day on which the record last changed."""
    license: Line | None = None
    gated: bool = False
    """Whether the download needs an accepted licence and a token."""
    pipeline_tag: Line | None = None
    """What the repository says the model is for, such as `text-generation`."""
    base_model: tuple[Line, ...] = ()
    """Repositories that it derives from."""
    config: dict[str, Any]
    """The config.json."""
    config_from: Literal["config.json", "gguf"] = "config.json"
    """`gguf`: the repository has no config.json, and its fields were read off a GGUF file's metadata."""
    generation_config: dict[str, Any] | None = None
    """The generation_config.json."""
    tensors: FoldedTensors | None = None
    """Tensors of the safetensors files; none if the repository has no such files."""
    files: dict[str, GgufFile] = Field(default_factory=dict)
    """GGUF files by name: the first part of a split model stands for all."""

    @cached_property
    def tensor_list(self) -> tuple[Tensors, ...]:
        return _unfold(self.tensors or {})

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors of the safetensors files."""
        return sum(each.bytes for each in self.tensor_list)

    def tensors_of(self, file: str | None) -> tuple[Tensors, ...]:
        """Tensors of the GGUF file `file`, or of the safetensors files; empty if the record has none."""
        if file is None:
            return self.tensor_list
        found = self.files.get(file)
        return found.tensor_list if found else ()

    def agrees_with(self, revision: str) -> bool:
        """Whether a model file's `revision` names what was recorded."""
        return revision in (self.revision, self.ref)


def record_name(uri: str) -> str:
    """File name of the record of `uri`: `ORG--NAME.json`; weights from elsewhere have their scheme in
    front."""
    scheme, _, rest = uri.partition("://")
    stem = rest.replace("/", "--")
    if scheme != "hf":
        stem = f"{scheme}--{stem}"
    if len(stem) > _LONGEST_STEM:
        stem = f"{stem[:_LONGEST_STEM]}-{sha256(uri.encode()).hexdigest()[:12]}"
    return f"{stem}.json"


def _unfold(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> tuple[Tensors, ...]:
    return tuple(unfolded(name, kind, shape) for name, (kind, shape) in tensors.items())
