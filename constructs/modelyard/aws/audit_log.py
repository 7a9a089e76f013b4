"""Log groups whose retention is stated in days."""

from __future__ import annotations

from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

_RETENTION: Final = {
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


class AuditLog(logs.LogGroup):
    """A log group that never keeps its events for ever, which is what CloudWatch does unless told.

    Args:
        retention_days: 7, 14, 30, 60, 90, 180 or 365.
        name: Default: CloudFormation makes one up.
        removal_policy: What becomes of the group when its stack goes.

    Raises:
        ValueError: another number of days.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        retention_days: int = 90,
        name: str | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        if retention_days not in _RETENTION:
            allowed = ", ".join(str(days) for days in _RETENTION)
            raise ValueError(f"retention_days must be one of {allowed}, got {retention_days}")
        super().__init__(
            scope,
            construct_id,
            log_group_name=name,
            retention=_RETENTION[retention_days],
            removal_policy=removal_policy,
        )
