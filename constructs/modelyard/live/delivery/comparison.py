"""The contents of the bucket that Flux reads, compared with a rendered tree."""

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
"""A key that Flux' source-controller reads before all others (its documentation of Buckets, "Excluding
files"): during a publication it ignores everything."""


@dataclass(frozen=True)
class BucketListing:
    """Keys of the bucket with their ETags, without the hold. `held`: a publication has started and not
    ended."""

    bucket: str
    tags: Mapping[str, str]
    held: bool


@dataclass(frozen=True)
class Changes:
    """Differences between the bucket and the tree."""

    bucket: str
    missing: tuple[str, ...]
    """Keys only in the tree."""
    differing: tuple[str, ...]
    """Keys in both, with different contents."""
    deletions: tuple[str, ...]
    """Keys of earlier deliveries that are no longer in the tree."""
    unchanged: int
    foreign: tuple[str, ...] = ()
    """Keys only in the bucket that modelyard did not write: they are left alone."""
    conflicts: tuple[str, ...] = ()
    """Keys among `differing` that modelyard did not write."""
    interrupted: bool = False
    """Whether an earlier publication did not finish."""
    delivered: Ownership | None = None
    """Keys written by earlier deliveries; None if the bucket has no list of them, or an unreadable one."""

    @property
    def uploads(self) -> tuple[str, ...]:
        """Keys to upload, in order: a kustomization after the files that it names."""
        return tuple(
            sorted(
                (*self.missing, *self.differing),
                key=lambda key: (Path(key).name == KUSTOMIZATION, -key.count("/"), key),
            )
        )

    @property
    def any(self) -> bool:
        """Whether there is anything to publish."""
        return bool(self.missing or self.differing or self.deletions or self.interrupted)


def delivery_bucket(ask: Ask, environment: str) -> str | None:
    """The bucket of stack Delivery; None before its first deploy.

    Raises:
        Unanswered: AWS does not answer.
    """
    return handed_over(ask, environment, "delivery", "bucket")


def listed(ask: Ask, bucket: str) -> BucketListing:
    """The bucket's current contents.

    Raises:
        Unanswered: AWS does not answer.
    """
    tags = {str(item["Key"]): str(item["ETag"]).strip('"') for item in objects(ask, bucket)}
    held = tags.pop(HOLD, None) is not None
    return BucketListing(bucket, tags, held)


def compare(ask: Ask, there: BucketListing, tree: Mapping[str, bytes]) -> Changes:
    """Differences between the bucket and `tree`, contents by key.

    Raises:
        Unanswered: AWS does not answer.
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
        # A bucket without a list was only ever filled by an earlier release.
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
    if "-" in tag:  # the ETag of a multipart upload is not the hash of its content
        return content(ask, there.bucket, key) == wanted
    # ETag of an object uploaded in one part and encrypted with SSE-S3.
    return tag == hashlib.md5(wanted, usedforsecurity=False).hexdigest()
