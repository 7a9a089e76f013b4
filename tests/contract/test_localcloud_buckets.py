"""Emptying buckets, against moto's S3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from modelyard.localcloud.buckets import empty_buckets
from modelyard.localcloud.inventory import Finding, Row


class MotoClients:
    def get(self, service: str) -> Any:
        return boto3.client(
            service, region_name="us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing"
        )


@pytest.fixture
def clients() -> Iterator[MotoClients]:
    with mock_aws():
        made = MotoClients()
        s3 = made.get("s3")
        for bucket in ("going", "staying"):
            s3.create_bucket(Bucket=bucket)
            s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
            s3.put_object(Bucket=bucket, Key="a.yaml", Body=b"1")
            s3.put_object(Bucket=bucket, Key="a.yaml", Body=b"2")
            s3.delete_object(Bucket=bucket, Key="a.yaml")
        yield made


def row(bucket: str, *, retained: bool) -> Row:
    return Row(
        stack="delivery",
        type="AWS::S3::Bucket",
        logical_id=bucket,
        physical_id=bucket,
        finding=Finding.CREATED,
        retained=retained,
    )


def test_every_version_and_marker_goes_and_retained_buckets_stay_as_they_are(clients: MotoClients) -> None:
    rows = [row("going", retained=False), row("staying", retained=True)]

    gone = empty_buckets(clients, rows)  # type: ignore[arg-type]

    s3 = clients.get("s3")
    assert gone == 3
    s3.delete_bucket(Bucket="going")  # refused while a version is left
    assert len(s3.list_object_versions(Bucket="staying")["Versions"]) == 2
