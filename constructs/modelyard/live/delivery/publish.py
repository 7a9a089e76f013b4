"""The rendered tree to the bucket that Flux reads, without a deploy.

S3 replaces one object at a time, so a publication holds Flux first: while the bucket has a `.sourceignore`
that ignores everything, Flux finds none of its folders, applies nothing and deletes nothing. It goes on when
the publication is whole.
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
    """Somebody else's publication has begun and has not ended; the text says which."""


class ForeignKeys(Exception):
    """Objects that modelyard did not write stand in the place of ours; the text names them."""


def publish(
    account: Account, seen: Changes, tree: Mapping[str, bytes], *, take_over: bool = False
) -> Changes:
    """Make a bucket hold `tree` while Flux waits, and say what changed.

    Whatever ends it early, Flux applies nothing until another one has ended.

    Args:
        seen: how the bucket differed when it was looked at; under the hold it is compared again.

    Raises:
        AnotherPublication: one of another tree is under way, and `take_over` does not say that it has died.
        ForeignKeys: an object of somebody else would be replaced; nothing was changed.
        Unanswered: the account refused; the next try goes on where this one stopped.
    """
    bucket = seen.bucket
    _refuse(seen)
    if not seen.any:
        return seen
    ours = _hold(account, bucket, tree, take_over=take_over)
    # Again: until the hold was ours, somebody else may have published.
    changes = compare(account.ask, listed(account.ask, bucket), tree)
    if changes.conflicts and ours:
        account.ask(_DELETE, Bucket=bucket, Key=HOLD)  # nothing was changed under it
    _refuse(changes)
    # Until the end the list names the former files as well as the new ones: whatever is left over will be
    # known as ours.
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
    """Files below `tree` that are not as in `fresh`, missing and superfluous ones among them."""
    here = {
        path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()
    }
    return sorted(key for key in here.keys() | fresh.keys() if here.get(key) != fresh.get(key))
