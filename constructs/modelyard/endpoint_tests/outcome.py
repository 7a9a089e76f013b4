"""What a job found out, in a bucket: the cluster is private, and who waits for the verdict is outside."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def publish(document: Mapping[str, Any]) -> None:
    """Put `document` at `JOB/POD.json` in the bucket that REPORTS names; do nothing where it names none.

    A failure is one line on standard error: the exit code stays the verdict on the model.
    """
    bucket = os.environ.get("REPORTS")
    if not bucket:
        return
    try:
        import boto3  # type: ignore[import-untyped]

        job, pod = os.environ["JOB_NAME"], os.environ["POD_NAME"]
        report = {**document, "time": datetime.now(UTC).isoformat(timespec="seconds"), "job": job, "pod": pod}
        boto3.client("s3", region_name=os.environ["REPORTS_REGION"]).put_object(
            Bucket=bucket,
            Key=f"{job}/{pod}.json",
            Body=json.dumps(report).encode(),
            ContentType="application/json",
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the model has been asked and the answer stands
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"the report did not reach the bucket {bucket}: {reason}", file=sys.stderr)
