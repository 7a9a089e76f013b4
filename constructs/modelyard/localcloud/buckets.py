"""Buckets with object versions, which CloudFormation does not delete."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.localcloud.endpoint import Clients
from modelyard.localcloud.inventory import InventoryRow


def empty_buckets(clients: Clients, rows: Iterable[InventoryRow]) -> int:
    """Delete every version of every object in the buckets among `rows` that are deleted with their stack;
    returns the count."""
    s3 = clients.get("s3")
    gone = 0
    for row in rows:
        if row.type != "AWS::S3::Bucket" or row.retained:
            continue
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=row.physical_id):
            versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            if versions:
                doomed = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in versions]
                s3.delete_objects(Bucket=row.physical_id, Delete={"Objects": doomed, "Quiet": True})
            gone += len(versions)
    return gone
