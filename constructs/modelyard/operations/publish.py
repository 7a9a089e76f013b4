"""The rendered tree to the bucket that Flux reads, without a deploy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from modelyard.account.session import Account, Action, Refused
from modelyard.spec import Environment

_GET_PARAMETER = Action("ssm", "GetParameter")
_LIST = Action("s3", "ListObjectsV2")
_PUT = Action("s3", "PutObject")
_DELETE = Action("s3", "DeleteObject")
_INDEX = "kustomization.yaml"


@dataclass(frozen=True)
class Changes:
    """Keys of the bucket that differ from the tree: to upload in order, and to delete afterwards."""

    bucket: str
    uploads: tuple[str, ...]
    deletions: tuple[str, ...]
    unchanged: int


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


def compare(account: Account, bucket: str, tree: Path) -> Changes:
    """What a publication would change.

    Raises:
        Unanswered: the account does not tell.
    """
    there: dict[str, str] = {
        item["Key"]: item["ETag"].strip('"') for item in account.ask(_LIST, Bucket=bucket).get("Contents", [])
    }
    here = dict(_files(tree))
    changed = [key for key, content in here.items() if there.get(key) != _etag(content)]
    return Changes(
        bucket=bucket,
        # A kustomization names its files: it comes after them, deeper ones before those that name them.
        uploads=tuple(sorted(changed, key=lambda key: (Path(key).name == _INDEX, -key.count("/"), key))),
        deletions=tuple(sorted(set(there) - set(here))),
        unchanged=len(here) - len(changed),
    )


def publish(account: Account, changes: Changes, tree: Path) -> None:
    """Carry `changes` out: first what is new, at last what nobody names any more.

    Raises:
        Unanswered: the account refused; what was uploaded before stays, and the next try begins there.
    """
    for key in changes.uploads:
        body = (tree / key).read_bytes()
        account.ask(_PUT, Bucket=changes.bucket, Key=key, Body=body, ContentType="application/yaml")
    for key in changes.deletions:
        account.ask(_DELETE, Bucket=changes.bucket, Key=key)


def stale(tree: Path, fresh: Path) -> list[str]:
    """Files of `tree` that are not as in `fresh`, missing and superfluous ones among them."""
    here, there = dict(_files(tree)), dict(_files(fresh))
    return sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))


def _files(tree: Path) -> Iterator[tuple[str, bytes]]:
    for path in tree.rglob("*"):
        if path.is_file():
            yield path.relative_to(tree).as_posix(), path.read_bytes()


def _etag(content: bytes) -> str:
    # S3's ETag of an object that was sent in one part and is encrypted with S3's own key.
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
