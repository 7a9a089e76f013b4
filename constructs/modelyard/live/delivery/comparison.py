"""What the bucket that Flux reads holds, compared with a rendered tree."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modelyard.live.api.aws import Ask
from modelyard.live.buckets import content, objects
from modelyard.live.parameters import handed_over
from modelyard.names import KUSTOMIZATION
from modelyard.writing import MARKER, NOTHING, Ownership

HOLD: Final = ".sourceignore"
"""A key in the bucket that Flux' source-controller reads before all others (its documentation of Buckets,
"Excluding files"): as long as a publication lasts, it ignores everything."""


@dataclass(frozen=True)
class BucketListing:
    """Keys of the bucket with their tags, without the hold. `held`: a publication has begun and has not
    ended."""

    bucket: str
    tags: Mapping[str, str]
    held: bool


@dataclass(frozen=True)
class Changes:
    """How the bucket differs from the tree."""

    bucket: str
    missing: tuple[str, ...]
    """Keys that the tree has and the bucket has not."""
    differing: tuple[str, ...]
    """Keys that both have, with different contents."""
    deletions: tuple[str, ...]
    """Keys that a delivery wrote and the tree has not any more."""
    unchanged: int
    foreign: tuple[str, ...] = ()
    """Keys that only the bucket has and that modelyard did not write: they are left alone."""
    conflicts: tuple[str, ...] = ()
    """Keys among `differing` that modelyard did not write."""
    interrupted: bool = False
    """Whether an earlier publication did not end."""
    delivered: Ownership | None = None
    """What the deliveries before have written; None where the bucket has no list of it, or one that cannot be
    read."""

    @property
    def uploads(self) -> tuple[str, ...]:
        """What a publication uploads, in its order: a kustomization comes after the files that it names."""
        return tuple(
            sorted(
                (*self.missing, *self.differing),
                key=lambda key: (Path(key).name == KUSTOMIZATION, -key.count("/"), key),
            )
        )

    @property
    def any(self) -> bool:
        """Whether a publication has something to do."""
        return bool(self.missing or self.differing or self.deletions or self.interrupted)


def delivery_bucket(ask: Ask, environment: str) -> str | None:
    """The bucket that stack Delivery made; None before it was deployed.

    Raises:
        Unanswered: the account does not tell.
    """
    return handed_over(ask, environment, "delivery", "bucket")


def listed(ask: Ask, bucket: str) -> BucketListing:
    """What the bucket holds now.

    Raises:
        Unanswered: the account does not tell.
    """
    tags = {str(item["Key"]): str(item["ETag"]).strip('"') for item in objects(ask, bucket)}
    held = tags.pop(HOLD, None) is not None
    return BucketListing(bucket, tags, held)


def compare(ask: Ask, there: BucketListing, tree: Mapping[str, bytes]) -> Changes:
    """How the bucket differs from `tree`, contents by key.

    Raises:
        Unanswered: the account does not tell.
    """
    delivered = _delivered(ask, there)
    ours = {MARKER, *(path.as_posix() for path in (delivered or NOTHING).files)}
    differing = {key for key in there.tags.keys() & tree.keys() if not _same(ask, there, key, tree[key])}
    missing = tree.keys() - there.tags.keys()
    superfluous = there.tags.keys() - tree.keys()
    return Changes(
        bucket=there.bucket,
        missing=tuple(sorted(missing)),
        differing=tuple(sorted(differing)),
        deletions=tuple(sorted(superfluous & ours)),
        unchanged=len(tree) - len(missing) - len(differing),
        foreign=tuple(sorted(superfluous - ours)),
        # A bucket without a list was filled by an earlier release alone.
        conflicts=tuple(sorted(differing - ours)) if delivered and delivered.files else (),
        interrupted=there.held,
        delivered=delivered,
    )


def _delivered(ask: Ask, there: BucketListing) -> Ownership | None:
    if MARKER not in there.tags:
        return None
    try:
        return Ownership.from_json(content(ask, there.bucket, MARKER))
    except ValueError:
        return None


def _same(ask: Ask, there: BucketListing, key: str, wanted: bytes) -> bool:
    tag = there.tags[key]
    if "-" in tag:  # the tag of an object that came in parts is not the hash of its content
        return content(ask, there.bucket, key) == wanted
    # S3's tag of an object that was sent in one part and is encrypted with S3's own key.
    return tag == hashlib.md5(wanted, usedforsecurity=False).hexdigest()
