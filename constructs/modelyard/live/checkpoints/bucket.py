"""A checkpoint in an S3 bucket, with the caller's own credentials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from modelyard.live.api.answers import Refusal, Unanswered
from modelyard.live.api.aws import Ask
from modelyard.live.buckets import listed, part
from modelyard.live.checkpoints.source import MOST_FILES, Facts, NotRead


class BucketFolder:
    """The objects directly below `uri`, `s3://BUCKET/PREFIX`."""

    def __init__(self, uri: str, ask: Ask) -> None:
        self.name = uri
        self.facts = Facts()
        self._ask = ask
        self._bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""

    @cached_property
    def files(self) -> Mapping[str, int]:
        try:
            found = listed(self._ask, self._bucket, self._prefix, most=MOST_FILES)
        except Unanswered as why:
            raise NotRead(f"{self.name} cannot be listed: {why}") from None
        if not found:
            raise NotRead(f"{self.name} is empty: no object's key begins with {self._prefix or 'anything'}")
        return {key.removeprefix(self._prefix): size for key, size in found.items()}

    def read(self, file: str, start: int, length: int) -> bytes:
        try:
            return part(self._ask, self._bucket, f"{self._prefix}{file}", start, length)
        except Refusal as why:
            if why.code == "InvalidRange":
                return b""
            raise NotRead(f"{self.name}/{file} cannot be read: {why}") from None
        except Unanswered as why:
            raise NotRead(f"{self.name}/{file} cannot be read: {why}") from None
