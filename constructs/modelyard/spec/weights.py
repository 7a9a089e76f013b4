"""The parts of a model: weights, adapters and draft models."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from modelyard.spec.checkpoint import CheckpointRecord
from modelyard.spec.document import (
    Document,
    ObjectName,
    SecretName,
)
from modelyard.spec.uri import check_path, check_uri

Task = Literal["generate", "embed", "rerank"]
CacheStrategy = Literal["efs", "s3-stream", "nvme"]

# Explicit ranges instead of \w, which matches all Unicode letters.
_S3_URI = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.=-]+)*"
_EFS_URI = r"efs://[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*"
_HF_URI = r"hf://[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+"
AnyUri = Annotated[str, Field(pattern=rf"^({_HF_URI}|{_EFS_URI}|{_S3_URI})$"), AfterValidator(check_uri)]
HubUri = Annotated[str, Field(pattern=rf"^{_HF_URI}$"), AfterValidator(check_uri)]
Revision = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]{1,80}$"), AfterValidator(check_path)]
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


class Recorded(Document):
    """A repository of weights, and its record if there is one beside the model files."""

    _record: CheckpointRecord | None = PrivateAttr(default=None)

    @property
    def record(self) -> CheckpointRecord | None:
        """What `modelyard model add` recorded of the repository."""
        return self._record

    def recorded(self, record: CheckpointRecord) -> Self:
        """With `record`, and its commit where the file states no revision: what was reviewed is served."""
        stated = getattr(self, "revision", None)
        pinned = record.revision is not None and (
            "revision" not in self.model_fields_set or stated == record.ref
        )
        found = self.model_copy(update={"revision": record.revision} if pinned else {})
        found._record = record
        return found


class RemoteCode(Document):
    """Permission to run code from the model's repository, with a reason."""

    reason: Annotated[str, Field(min_length=10)]
    """Why the code may run, and who read it."""


ConfigJson = Annotated[
    dict[str, Any], BeforeValidator(lambda value: value, json_schema_input_type=dict[str, Any] | str)
]
"""A config.json; in a model file, alternatively the path of one."""


class Weights(Recorded):
    """Where the weights come from."""

    uri: AnyUri
    """`hf://ORG/REPO`; `efs://PATH` for weights that are already in the shared cache; `s3://BUCKET/PREFIX`
    for weights that are streamed from your bucket."""
    revision: Revision = "main"
    """Branch, tag or 40-digit commit of a Hugging Face repository."""
    file: (
        Annotated[
            str, Field(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*\.gguf$"), AfterValidator(check_path)
        ]
        | None
    ) = None
    """The GGUF file in a repository with several; the first part of a split model."""
    architecture: str | None = None
    """Hugging Face ID of a model with the same architecture, if the URI is not in the table (always for
    GGUF)."""
    config: ConfigJson | None = None
    """The checkpoint's config.json, for an architecture that is not in the table; a path is relative to the
    model file."""
    served_names: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Served model names; default: the Hugging Face ID and the model's name."""
    auth: SecretName | None = None
    """Logical name of the secret with the Hugging Face token; default: `hf-token` for gated repositories."""
    trust_remote_code: RemoteCode | None = None
    """Run Python code from the repository; needs a reason and a commit as revision."""

    @property
    def repository(self) -> str:
        """The URI without its scheme."""
        return self.uri.split("://", 1)[1]

    @property
    def scheme(self) -> str:
        return self.uri.split("://", 1)[0]

    @model_validator(mode="after")
    def _one_source_of_facts(self) -> Self:
        if self.architecture and self.config is not None:
            raise ValueError("give one of architecture and config")
        return self

    @model_validator(mode="after")
    def _remote_code_is_pinned(self) -> Self:
        if self.trust_remote_code and not _COMMIT.match(self.revision):
            raise ValueError(
                f"trustRemoteCode needs a revision that is a 40-digit commit, got {self.revision}"
            )
        return self


class Adapter(Recorded):
    """A LoRA adapter served beside the base model."""

    name: ObjectName
    """Name under which clients ask for the adapter."""
    uri: AnyUri
    """`hf://ORG/REPO`; `efs://PATH` in the shared cache; or `s3://BUCKET/PREFIX`, which is copied into the
    cache once: a new version needs a new prefix."""
    revision: Revision = "main"
    """Branch, tag or 40-digit commit of the repository."""
    rank: Literal[1, 8, 16, 32, 64, 128, 256, 320, 512] = 16
    """Rank of the adapter's matrices."""


class DraftModel(Recorded):
    """Weights of a draft model."""

    uri: HubUri
    """Repository of the draft model or head."""
    revision: Revision = "main"
    """Branch, tag or 40-digit commit of the repository."""
    architecture: str | None = None
    """Hugging Face ID of a model with the same architecture, if the URI is not in the table."""
    config: ConfigJson | None = None
    """The draft's config.json, as `model.config`."""

    @property
    def repository(self) -> str:
        """The URI without its scheme."""
        return self.uri.split("://", 1)[1]


def _parse_draft(value: object) -> object:
    return {"uri": value} if isinstance(value, str) else value


class SpeculativeDecoding(Document):
    """Speculative decoding: draft tokens that the model only verifies."""

    method: Literal["ngram", "draft", "mtp", "eagle", "eagle3"] = "ngram"
    """`ngram` drafts from the prompt, `mtp` with layers that the checkpoint brings, `draft` with a small
    model of the same vocabulary, `eagle` and `eagle3` with a head trained for the model."""
    model: Annotated[
        DraftModel | None, BeforeValidator(_parse_draft, json_schema_input_type=DraftModel | str | None)
    ] = None
    """The draft model for `draft`, `eagle` and `eagle3`; short form: `hf://ORG/REPO`."""
    tokens: Annotated[int, Field(ge=1, le=16)] = 5
    """Draft tokens per step."""
    prompt_lookup_max: Annotated[int, Field(ge=1, le=16)] = 4
    """Longest prompt n-gram that `ngram` looks up, in tokens."""

    @model_validator(mode="after")
    def _a_model_where_one_drafts(self) -> Self:
        if (self.model is not None) != (self.method in ("draft", "eagle", "eagle3")):
            raise ValueError(
                f"method {self.method} needs a model"
                if self.model is None
                else f"method {self.method} takes no model"
            )
        return self


def parse_weights(value: object) -> object:
    return {"uri": value} if isinstance(value, str) else value


def fetch_name(uri: str) -> str:
    """Name prefix of the Job that downloads `uri`: its repository as a DNS label, short enough for a
    suffix."""
    name = re.sub(r"[^a-z0-9]+", "-", uri.rpartition("/")[2].lower()).strip("-")
    return f"{name[:40].strip('-') or 'weights'}-fetch"
