"""Upload of the rendered tree to the bucket that Flux reads, without a deploy.

S3 replaces one object at a time, so a publication first puts Flux on hold: while the bucket has a
`.sourceignore` that ignores everything, Flux finds none of its folders, applies nothing and deletes nothing.
It resumes once the publication is complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Account, Operation
from modelyard.live.buckets import GET_OBJECT
from modelyard.live.delivery.comparison import HOLD, Changes, compare, listed
from modelyard.writing import MARKER, NOTHING, Ownership

_PUT = Operation("s3", "PutObject")
_DELETE = Operation("s3", "DeleteObject")
_TAKEN: Final = "PreconditionFailed"


class AnotherPublication(Exception):
    """Another publication has started and not ended; the text names it."""


class ForeignKeys(Exception):
    """Objects that modelyard did not write have the keys of ours; the text names them."""


def publish(
    account: Account, seen: Changes, tree: Mapping[str, bytes], *, take_over: bool = False
) -> Changes:
    """Make a bucket hold `tree` while Flux is on hold, and return the changes.

    If it is interrupted, Flux applies nothing until another publication has finished.

    Args:
        seen: Differences at the first look; compared again under the hold.

    Raises:
        AnotherPublication: another tree is being published, and `take_over` is not set for a dead
            publication.
        ForeignKeys: an object that modelyard did not write would be replaced; nothing was changed.
        Unanswered: AWS refuses; the next run resumes here.
    """
    bucket = seen.bucket
    _refuse(seen)
    if not seen.any:
        return seen
    ours = _hold(account, bucket, tree, take_over=take_over)
    # Compare again: another publication may have run before the hold was ours.
    changes = compare(account.ask, listed(account.ask, bucket), tree)
    if changes.conflicts and ours:
        account.ask(_DELETE, Bucket=bucket, Key=HOLD)  # nothing was changed under it
    _refuse(changes)
    # Until the end, the list names both old and new files, so that leftovers stay known as ours.
    coming = Ownership.from_json(tree[MARKER]) if MARKER in tree else NOTHING
    before = changes.delivered or NOTHING
    both = Ownership({**before.files, **coming.files})
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


def _hold(account: Account, bucket: str, tree: Mapping[str, bytes], *, take_over: bool) -> bool:
    """Make Flux wait; whether it did not wait before, so that no publication stopped half-way."""
    tree_id = hashlib.sha256(tree.get(MARKER, b"")).hexdigest()[:16]
    body = f"# modelyard publish of tree {tree_id}: Flux waits until it has ended.\n*\n".encode()
    condition = {} if take_over else {"IfNoneMatch": "*"}
    try:
        account.ask(_PUT, Bucket=bucket, Key=HOLD, Body=body, ContentType="text/plain", **condition)
    except Refusal as refused:
        if refused.code != _TAKEN:
            raise
        held = account.ask(GET_OBJECT, Bucket=bucket, Key=HOLD)
        if held["Body"] != body:
            raise AnotherPublication(
                f"{HOLD} is in {bucket} since {held['LastModified']:%Y-%m-%d %H:%M:%S} UTC"
            ) from None
        return False
    return not take_over


def stale(tree: Path, fresh: Mapping[str, bytes]) -> list[str]:
    """Files below `tree` that differ from `fresh`, including missing and extra ones."""
    here = {
        path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    return sorted(key for key in here.keys() | fresh.keys() if here.get(key) != fresh.get(key))
