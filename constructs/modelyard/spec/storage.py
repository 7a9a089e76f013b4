"""Storage of weights: the shared model cache, and buckets for streaming."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from modelyard.spec.document import Document

BucketName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]


_LUSTRE_SMALLEST_GIB: Final = 1200
_LUSTRE_STEP_GIB: Final = 2400


def lustre_capacity_gib(wanted: int) -> int:
    """The next FSx capacity: 1,200 GiB, or multiples of 2,400 GiB (FSx API, StorageCapacity)."""
    if wanted <= _LUSTRE_SMALLEST_GIB:
        return _LUSTRE_SMALLEST_GIB
    return math.ceil(wanted / _LUSTRE_STEP_GIB) * _LUSTRE_STEP_GIB


class Cache(Document):
    """The file system that all model servers share, and the bucket from which they stream."""

    file_system: Literal["efs", "s3-files", "lustre"] = "efs"
    """`efs`: survives the loss of a zone; `s3-files`: a file system over the weights' bucket; `lustre`: the
    fastest, in one zone."""
    size_gib: Annotated[int, Field(ge=10)] = 2048
    """Least size of `lustre`, in GiB; EFS and S3 Files grow and bill by use."""
    lustre_mb_per_second_per_tib: Literal[125, 250, 500, 1000] = 250
    """Throughput per TiB of `lustre`."""
    backups: bool | None = None
    """Nightly backups of EFS; default: true if `removal` is `retain`. Weights can be fetched again, batch
    results cannot."""
    file_system_id: Annotated[str, Field(pattern=r"^fs-[0-9a-f]{8,17}$")] | None = None
    """An existing EFS file system; default: Modelyard creates one."""
    access_point_id: Annotated[str, Field(pattern=r"^fsap-[0-9a-f]{8,17}$")] | None = None
    """Its access point with uid and gid 2000; required together with `fileSystemId`."""
    weights_bucket: bool = False
    """Create an S3 bucket for streamed weights, `modelyard-ENVIRONMENT-weights-ACCOUNT-REGION`."""
    read_buckets: tuple[BucketName, ...] = ()
    """Existing buckets from which `s3://` models are streamed; servers can only read them."""

    sweep: Literal["delete", "report", "off"] | None = None
    """What happens on Sundays to revisions and compiled kernels that no model has named for `sweepAfterDays`:
    `report` only says what could go. Default: `delete`; `off` with `fileSystemId`, which others may use."""
    sweep_after_days: Annotated[int, Field(ge=7, le=3650)] = 30
    """Days for which they stay. Of a repository that a model uses, the revision before always stays."""

    @property
    def sweeping(self) -> Literal["delete", "report", "off"]:
        """What the sweep does."""
        return self.sweep or ("off" if self.file_system_id else "delete")

    @property
    def mounted_by_role(self) -> bool:
        """Whether only the EFS driver's own IAM role may mount: of a file system of yours we know no policy,
        and those of S3 Files and Lustre work in other ways."""
        return self.file_system == "efs" and self.file_system_id is None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.file_system_id is None) != (self.access_point_id is None):
            raise ValueError("fileSystemId and accessPointId go together")
        if self.file_system_id and self.file_system != "efs":
            raise ValueError(f"fileSystemId is of EFS, fileSystem is {self.file_system}")
        return self
