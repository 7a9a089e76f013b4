"""Brings the objects below one prefix of a bucket into the model cache. The fetch job runs this file alone,
as text.

A partial folder keeps what was downloaded, so a restart resumes; the rename makes a whole folder appear at
once, after sizes were compared. Exit codes: 3 no access, 4 no object, 5 no room.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

_PACKAGES = "/tmp/boto3"


def main() -> None:
    target, marker = Path(os.environ["TARGET"]), os.environ["MARKER"]
    if (target / marker).exists():
        print(target, "is complete")
        return
    _install()
    import boto3  # type: ignore[import-untyped]
    from botocore.exceptions import ClientError  # type: ignore[import-untyped]

    bucket, prefix = os.environ["BUCKET"], os.environ["PREFIX"]
    prefix = f"{prefix}/" if prefix else ""
    s3 = boto3.client("s3")
    try:
        found = _listed(s3, bucket, prefix)
        if not found:
            print("no object below", prefix, "in bucket", bucket)
            sys.exit(4)
        _download(s3, bucket, found, target, marker)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (401, 403, 404):
            print("no access to bucket", bucket + ":", error)
            sys.exit(3)
        raise


def _listed(s3: Any, bucket: str, prefix: str) -> dict[str, tuple[str, int]]:
    """Path below the prefix to key and bytes, of every object."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    objects = [each for page in pages for each in page.get("Contents", ())]
    return {
        each["Key"].removeprefix(prefix): (each["Key"], each["Size"])
        for each in objects
        if not each["Key"].endswith("/")
    }


def _download(s3: Any, bucket: str, found: dict[str, tuple[str, int]], target: Path, marker: str) -> None:
    partial = target.with_name(target.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    missing = {
        path: (key, size)
        for path, (key, size) in found.items()
        if not (partial / path).is_file() or (partial / path).stat().st_size != size
    }
    needed, free = sum(size for _, size in missing.values()), shutil.disk_usage(partial).free
    if needed > free:
        print(needed, "bytes to download,", free, "free in the cache")
        sys.exit(5)
    for path, (key, _) in missing.items():
        (partial / path).parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(bucket, key, str(partial / path))
    (partial / marker).write_text(f"{len(found)} objects")
    partial.rename(target)
    print(target, "is complete:", len(found), "objects")


def _install() -> None:
    """Make the client importable where the image does not have it."""
    try:
        import boto3  # noqa: F401
    except ImportError:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", _PACKAGES, os.environ["CLIENT"]]
        subprocess.run(pip, check=True)
        sys.path.insert(0, _PACKAGES)


if __name__ == "__main__":
    main()
