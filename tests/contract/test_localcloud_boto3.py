"""The embedded AWS through boto3: isolated from the user's settings, and against moto's S3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto import mock_aws

from modelyard.localcloud.buckets import empty_buckets
from modelyard.localcloud.endpoint import Endpoint
from modelyard.localcloud.inventory import InventoryRow, Presence


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


def row(bucket: str, *, retained: bool) -> InventoryRow:
    return InventoryRow(
        stack="delivery",
        type="AWS::S3::Bucket",
        logical_id=bucket,
        physical_id=bucket,
        presence=Presence.CREATED,
        retained=retained,
    )


def test_every_version_and_marker_goes_and_retained_buckets_stay_as_they_are(clients: MotoClients) -> None:
    rows = [row("going", retained=False), row("staying", retained=True)]

    gone = empty_buckets(clients, rows)  # type: ignore[arg-type]

    s3 = clients.get("s3")
    assert gone == 3
    s3.delete_bucket(Bucket="going")  # refused while a version is left
    assert len(s3.list_object_versions(Bucket="staying")["Versions"]) == 2


ENDPOINT = Endpoint(url="http://127.0.0.1:4566", pid=1, account="123456789012", region="eu-central-1")
USER = {
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_ENDPOINT_URL": "https://aws.example.com",
    "AWS_ENDPOINT_URL_S3": "https://s3.example.com",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_PROFILE": "customer",
    "AWS_REGION": "eu-west-1",
    "HTTP_PROXY": "http://proxy.example.com:3128",
}


def test_the_boto3_clients_are_blind_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in USER.items():
        monkeypatch.setenv(name, value)

    client = ENDPOINT.client("s3")

    assert client.meta.endpoint_url == ENDPOINT.url
    assert client.meta.region_name == ENDPOINT.region
    assert client._get_credentials().access_key == ENDPOINT.account
