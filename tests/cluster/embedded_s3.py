"""A bucket of the embedded AWS, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]

from modelyard.localcloud.server import RECORD
from tests.cluster.programs import ROOT, running, until

NAME, REGION = "tree", "us-east-2"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": REGION}

_PYTHON = ROOT / ".venv-localcloud" / "bin" / "python"
_SERVER = ROOT / "constructs" / "modelyard" / "localcloud" / "server.py"


class Bucket:
    """A tree in S3, as `cdk deploy` leaves it there."""

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self.address = address
        self._held: Mapping[Path, str] = {}

    def publish(self, tree: Mapping[Path, str]) -> bool:
        """Let the bucket hold `tree` and nothing else; whether it held another."""
        changes, self._held = tree != self._held, tree
        listed = self._client.list_objects_v2(Bucket=NAME).get("Contents", [])
        for path, text in tree.items():
            self._client.put_object(Bucket=NAME, Key=path.as_posix(), Body=text.encode())
        for gone in {each["Key"] for each in listed} - {path.as_posix() for path in tree}:
            self._client.delete_object(Bucket=NAME, Key=gone)
        return changes

    def contents(self) -> dict[str, bytes]:
        """Everything in it."""
        listed = self._client.list_objects_v2(Bucket=NAME).get("Contents", [])
        keys = [each["Key"] for each in listed]
        return {key: self._client.get_object(Bucket=NAME, Key=key)["Body"].read() for key in keys}


@contextmanager
def bucket(folder: Path) -> Iterator[Bucket]:
    """A new one, until the block ends."""
    state = folder / "localcloud"
    state.mkdir()
    arguments = ["-I", str(_SERVER), "--state", str(state)]
    with running("localcloud", arguments, folder, executable=_PYTHON) as server:

        def started() -> Any:
            server.check()
            record = state / RECORD
            return json.loads(record.read_text(encoding="utf-8")) if record.exists() else None

        port = until(started, "embedded AWS")["port"]
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_bucket(Bucket=NAME, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield Bucket(client, f"127.0.0.1:{port}")
