"""Custom::CDKBucketDeployment: puts the files of a BucketDeployment into the bucket.

CDK's own handler calls the aws command at a fixed path of its Lambda layer, which does not exist here. The
same steps with botocore: fetch each source from the staging bucket, unzip it, replace its markers, upload the
files that the filters select, prune, and empty the prefix on deletion unless retained. Rejected: CloudFront
invalidation, and a stack that needs the objects' version ids.
"""

from __future__ import annotations

import fnmatch
import io
import json
import mimetypes
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from modelyard.localcloud.plugin.resource_type import (
    Aws,
    Made,
    Properties,
    RefusedRequest,
    ResourceAddress,
    ResourceType,
)

_OWNER_TAG = "aws-cdk:cr-owned"
_DELETE_BATCH = 1000  # the API's limit

# `SystemMetadata` uses option names of the aws command; these are the PutObject parameters.
_SYSTEM_METADATA = {
    "cache-control": "CacheControl",
    "content-disposition": "ContentDisposition",
    "content-encoding": "ContentEncoding",
    "content-language": "ContentLanguage",
    "content-type": "ContentType",
    "sse": "ServerSideEncryption",
    "sse-kms-key-id": "SSEKMSKeyId",
    "storage-class": "StorageClass",
    "acl": "ACL",
}


def with_markers_replaced(content: bytes, markers: Mapping[str, Any], *, json_escape: bool) -> bytes:
    """Replace the markers from synthesis with deploy-time values."""
    for marker, value in markers.items():
        text = json.dumps(value) if json_escape else str(value)
        if json_escape and isinstance(value, str):
            text = text[1:-1]  # the file already has the quotes
        content = content.replace(marker.encode(), text.encode())
    return content


def selected(path: str, exclude: Sequence[str], include: Sequence[str]) -> bool:
    """The filters of `aws s3 sync`: everything, minus `exclude`; `include` wins."""
    chosen = not any(fnmatch.fnmatchcase(path, pattern) for pattern in exclude)
    return chosen or any(fnmatch.fnmatchcase(path, pattern) for pattern in include)


def prefix_of(properties: Properties) -> str:
    prefix = str(properties.get("DestinationBucketKeyPrefix") or "").strip("/")
    return f"{prefix}/" if prefix else ""


def _is(properties: Properties, name: str, *, default: bool) -> bool:
    return str(properties.get(name, default)).lower() == "true"


class BucketDeployment(ResourceType):
    name = "Custom::CDKBucketDeployment"

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        return self._deploy(aws, properties, f"aws.cdk.s3deployment.{uuid.uuid4()}")

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        moved = (old["DestinationBucketName"], prefix_of(old)) != (
            new["DestinationBucketName"],
            prefix_of(new),
        )
        if moved and not _is(new, "RetainOnDelete", default=True):
            self._empty(aws, old)
        return self._deploy(aws, new, physical_id)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        if not _is(properties, "RetainOnDelete", default=True) and not self._owned(aws, properties):
            self._empty(aws, properties)

    def _deploy(self, aws: Aws, properties: Properties, physical_id: str) -> Made:
        for unsupported in ("DistributionId", "OutputObjectVersionIds"):
            if properties.get(unsupported) not in (None, "", False, "false"):
                raise RefusedRequest(f"{unsupported} is not carried out by the embedded AWS", "NotSupported")
        s3 = aws.client("s3")
        bucket, prefix = properties["DestinationBucketName"], prefix_of(properties)
        exclude, include = list(properties.get("Exclude") or []), list(properties.get("Include") or [])
        files = {
            path: content
            for path, content in self._files(aws, properties)
            if selected(path, exclude, include)
        }
        for path, content in files.items():
            s3.put_object(Bucket=bucket, Key=prefix + path, Body=content, **self._metadata(path, properties))
        if _is(properties, "Prune", default=True):
            stale = [
                key
                for key in self._keys(aws, bucket, prefix)
                if key.removeprefix(prefix) not in files
                and selected(key.removeprefix(prefix), exclude, include)
            ]
            self._remove(aws, bucket, stale)
        attributes: dict[str, Any] = {
            "DestinationBucketArn": properties.get("DestinationBucketArn") or f"arn:aws:s3:::{bucket}",
            "SourceObjectKeys": list(properties["SourceObjectKeys"])
            if _is(properties, "OutputObjectKeys", default=True)
            else [],
        }
        keys = sorted(prefix + path for path in files)
        return Made(physical_id, attributes, {"bucket": bucket, "keys": keys})

    @staticmethod
    def _files(aws: Aws, properties: Properties) -> Iterator[tuple[str, bytes]]:
        buckets, keys = properties["SourceBucketNames"], properties["SourceObjectKeys"]
        markers = properties.get("SourceMarkers") or [{}] * len(keys)
        settings = properties.get("SourceMarkersConfig") or [{}] * len(keys)
        for bucket, key, marker, setting in zip(buckets, keys, markers, settings, strict=True):
            archive = aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
            if not _is(properties, "Extract", default=True):
                yield PurePosixPath(key).name, archive
                continue
            json_escape = _is(setting, "jsonEscape", default=False)
            with zipfile.ZipFile(io.BytesIO(archive)) as unpacked:
                for item in unpacked.infolist():
                    if not item.is_dir():
                        content = unpacked.read(item)
                        yield item.filename, with_markers_replaced(content, marker, json_escape=json_escape)

    @staticmethod
    def _metadata(path: str, properties: Properties) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        guessed, _ = mimetypes.guess_type(path)
        if guessed:
            arguments["ContentType"] = guessed
        for name, value in (properties.get("SystemMetadata") or {}).items():
            if name.lower() not in _SYSTEM_METADATA:
                raise RefusedRequest(
                    f"system metadata {name} is not carried out by the embedded AWS", "NotSupported"
                )
            arguments[_SYSTEM_METADATA[name.lower()]] = value
        if properties.get("UserMetadata"):
            arguments["Metadata"] = {k.lower(): v for k, v in properties["UserMetadata"].items()}
        return arguments

    @staticmethod
    def _owned(aws: Aws, properties: Properties) -> bool:
        """Whether a replacement with another id still uses this prefix: CDK marks it with a bucket tag."""
        s3 = aws.client("s3")
        prefix = prefix_of(properties).rstrip("/")
        tag = f"{_OWNER_TAG}:{prefix}" if prefix else _OWNER_TAG
        try:
            tags = s3.get_bucket_tagging(Bucket=properties["DestinationBucketName"])["TagSet"]
        except s3.exceptions.ClientError:
            return False  # no bucket or no tags: no owner
        return any(item["Key"].startswith(tag) for item in tags)

    def _empty(self, aws: Aws, properties: Properties) -> None:
        bucket = properties["DestinationBucketName"]
        self._remove(aws, bucket, self._keys(aws, bucket, prefix_of(properties)))

    @staticmethod
    def _keys(aws: Aws, bucket: str, prefix: str) -> list[str]:
        pages = aws.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    @staticmethod
    def _remove(aws: Aws, bucket: str, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _DELETE_BATCH):
            batch = [{"Key": key} for key in keys[start : start + _DELETE_BATCH]]
            aws.client("s3").delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True})


TYPES: tuple[ResourceType, ...] = (BucketDeployment(),)
