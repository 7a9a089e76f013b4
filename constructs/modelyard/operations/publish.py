"""The rendered tree to the bucket that Flux reads, without a deploy.

S3 replaces one object at a time, so a publication holds Flux first: while the bucket has a `.sourceignore` that ignores
everything, Flux finds none of its folders, applies nothing and deletes nothing. It goes on when the publication is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from modelyard.account.session import Account, Action, Refused
from modelyard.deployed.checks import HOLD
from modelyard.spec import Environment
from modelyard.writing import MARKER, NOTHING, Ownership

_GET_PARAMETER = Action("ssm", "GetParameter")
_LIST = Action("s3", "ListObjectsV2")
_GET = Action("s3", "GetObject")
_PUT = Action("s3", "PutObject")
_DELETE = Action("s3", "DeleteObject")
_INDEX = "kustomization.yaml"

_TAKEN: Final = "PreconditionFailed"


class AnotherPublication(Exception):
    """Somebody else's publication has begun and has not ended; the text says which."""


class ForeignKeys(Exception):
    """Objects that modelyard did not write stand in the place of ours; the text names them."""


@dataclass(frozen=True)
class Changes:
    """Keys of the bucket that differ from the tree: to upload in order, and to delete afterwards.

    `foreign` are keys that modelyard did not write: they are left alone. `interrupted`: an earlier publication did not end.
    """

    bucket: str
    uploads: tuple[str, ...]
    deletions: tuple[str, ...]
    unchanged: int
    foreign: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Foreign keys that the tree has as well, with another content."""
    interrupted: bool = False
    delivered: Ownership = NOTHING
    """What the deliveries before have written."""

    @property
    def any(self) -> bool:
        """Whether there is something to do."""
        return bool(self.uploads or self.deletions or self.interrupted)


def delivery_bucket(account: Account, environment: Environment) -> str | None:
    """The bucket that stack Delivery made; None before it was deployed.

    Raises:
        Unanswered: the account does not tell.
    """
    try:
        answer = account.ask(_GET_PARAMETER, Name=f"/modelyard/{environment.name}/delivery/bucket")
    except Refused as refused:
        if refused.code == "ParameterNotFound":
            return None
        raise
    return str(answer["Parameter"]["Value"])


def compare(account: Account, bucket: str, tree: Mapping[str, bytes]) -> Changes:
    """What a publication of `tree`, contents by key, would change.

    Raises:
        Unanswered: the account does not tell.
    """
    there: dict[str, str] = {
        item["Key"]: item["ETag"].strip('"') for item in account.ask(_LIST, Bucket=bucket).get("Contents", [])
    }
    interrupted = there.pop(HOLD, None) is not None
    delivered = _delivered(account, bucket) if MARKER in there else NOTHING
    ours = {MARKER, *(path.as_posix() for path in delivered.files)}
    changed = [key for key, content in tree.items() if there.get(key) != _etag(content)]
    superfluous = there.keys() - tree.keys()
    return Changes(
        bucket=bucket,
        # A kustomization names its files: it comes after them, deeper ones before those that name them.
        uploads=tuple(sorted(changed, key=lambda key: (Path(key).name == _INDEX, -key.count("/"), key))),
        deletions=tuple(sorted(superfluous & ours)),
        unchanged=len(tree) - len(changed),
        foreign=tuple(sorted(superfluous - ours)),
        # A bucket without a list was filled by an earlier release alone.
        conflicts=tuple(sorted(there.keys() & set(changed) - ours)) if delivered.files else (),
        interrupted=interrupted,
        delivered=delivered,
    )


def publish(account: Account, bucket: str, tree: Mapping[str, bytes], *, take_over: bool = False) -> Changes:
    """Make `bucket` hold `tree` while Flux waits, and say what changed.

    Whatever ends it early, Flux applies nothing until another one has ended.

    Raises:
        AnotherPublication: one of another tree is under way, and `take_over` does not say that it has died.
        ForeignKeys: an object of somebody else would be replaced; nothing was changed.
        Unanswered: the account refused; the next try goes on where this one stopped.
    """
    changes = compare(account, bucket, tree)
    _refuse(changes)
    if not changes.any:
        return changes
    _hold(account, bucket, tree, take_over=take_over)
    # Again: until the hold was ours, somebody else may have published.
    changes = compare(account, bucket, tree)
    _refuse(changes)
    # Until the end the list names the former files as well as the new ones: whatever is left over will be known as ours.
    coming = Ownership.from_json(tree[MARKER]) if MARKER in tree else NOTHING
    both = Ownership({**changes.delivered.files, **coming.files})
    _upload(account, bucket, MARKER, both.to_json())
    for key in changes.uploads:
        if key != MARKER:
            _upload(account, bucket, key, tree[key])
    for key in changes.deletions:
        account.ask(_DELETE, Bucket=bucket, Key=key)
    _upload(account, bucket, MARKER, coming.to_json())
    account.ask(_DELETE, Bucket=bucket, Key=HOLD)
    return changes


def _refuse(changes: Changes) -> None:
    if changes.conflicts:
        raise ForeignKeys(f"{', '.join(changes.conflicts[:5])} in {changes.bucket}")


def _upload(account: Account, bucket: str, key: str, content: bytes) -> None:
    kind = "application/json" if key == MARKER else "application/yaml"
    account.ask(_PUT, Bucket=bucket, Key=key, Body=content, ContentType=kind)


def _hold(account: Account, bucket: str, tree: Mapping[str, bytes], *, take_over: bool) -> None:
    tree_id = hashlib.sha256(tree.get(MARKER, b"")).hexdigest()[:16]
    body = f"# modelyard publish of tree {tree_id}: Flux waits until it has ended.\n*\n".encode()
    condition = {} if take_over else {"IfNoneMatch": "*"}
    try:
        account.ask(_PUT, Bucket=bucket, Key=HOLD, Body=body, ContentType="text/plain", **condition)
    except Refused as refused:
        if refused.code != _TAKEN:
            raise
        held = account.ask(_GET, Bucket=bucket, Key=HOLD)
        if held["Body"].read() != body:
            raise AnotherPublication(
                f"{HOLD} is in {bucket} since {held['LastModified']:%Y-%m-%d %H:%M:%S} UTC"
            ) from None


def _delivered(account: Account, bucket: str) -> Ownership:
    """What the last delivery wrote; nothing where its list cannot be read, so that nothing is deleted."""
    try:
        return Ownership.from_json(account.ask(_GET, Bucket=bucket, Key=MARKER)["Body"].read())
    except ValueError:
        return NOTHING


def stale(tree: Path, fresh: Mapping[str, bytes]) -> list[str]:
    """Files below `tree` that are not as in `fresh`, missing and superfluous ones among them."""
    here = {
        path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    return sorted(key for key in here.keys() | fresh.keys() if here.get(key) != fresh.get(key))


def _etag(content: bytes) -> str:
    # S3's ETag of an object that was sent in one part and is encrypted with S3's own key.
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
