"""Contents of a bucket."""

from __future__ import annotations

from typing import Any

from modelyard.live.api.aws import Ask, Operation

GET_OBJECT = Operation("s3", "GetObject")
_LIST = Operation("s3", "ListObjectsV2")


def objects(ask: Ask, bucket: str) -> list[dict[str, Any]]:
    """Every object as S3 lists it: key, ETag and last modification.

    Raises:
        Unanswered: AWS does not answer.
    """
    return list(ask(_LIST, Bucket=bucket).get("Contents", []))


def content(ask: Ask, bucket: str, key: str) -> bytes:
    """The content of an object.

    Raises:
        Unanswered: AWS does not answer.
    """
    return bytes(ask(GET_OBJECT, Bucket=bucket, Key=key)["Body"])


def listed(ask: Ask, bucket: str, prefix: str, *, most: int) -> dict[str, int]:
    """Sizes of up to `most` objects directly below `prefix`, in bytes by key.

    Raises:
        Unanswered: AWS does not answer.
    """
    answer = ask(_LIST, Bucket=bucket, Prefix=prefix, Delimiter="/", PaginationConfig={"MaxItems": most})
    return {str(each["Key"]): int(each["Size"]) for each in answer.get("Contents", [])}


def part(ask: Ask, bucket: str, key: str, start: int, length: int) -> bytes:
    """`length` bytes of an object from `start` on; fewer where it ends.

    Raises:
        Unanswered: AWS does not answer.
    """
    span = f"bytes={start}-{start + length - 1}"
    return bytes(ask(GET_OBJECT, Bucket=bucket, Key=key, Range=span)["Body"])[:length]
