"""Cost limits of an environment, their recipients, and office hours."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from modelyard.spec.cron import Cron
from modelyard.spec.document import Document
from modelyard.spec.operation import begins_and_ends
from modelyard.spec.timezone import TimeZone

MonitorArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:ce::[0-9]{12}:anomalymonitor/[0-9a-f-]{36}$")]
Email = Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]


class CostLimits(Document):
    """Cost limits that only alert; they never switch anything off."""

    monthly_usd: Annotated[int, Field(ge=1)] | None = None
    """Monthly budget of the environment in US dollars, by its tag `modelyard:environment`."""
    alert_at_percent: Annotated[tuple[Annotated[int, Field(ge=1, le=1000)], ...], Field(max_length=5)] = (
        50,
        80,
        100,
    )
    """Percentages of the budget that trigger an alert; also when the forecast exceeds the last one."""
    anomaly_usd: Annotated[int, Field(ge=1)] | None = None
    """Alert on AWS cost anomalies above this amount; needs `anomalyMonitor`."""
    anomaly_monitor: Literal["services", "tag"] | MonitorArn | None = None
    """What detects them: the ARN of a monitor that the account has (many have AWS' own,
    `Default-Services-Monitor`), `services` to create that one, of all the account's services, or `tag` to
    create one of this environment's costs, which AWS allows in the payer account only."""
    emails: tuple[Email, ...] = ()
    """Recipients of budget, anomaly and unused reservation alerts; each address has to confirm once."""

    @model_validator(mode="after")
    def _somebody_listens(self) -> Self:
        if (self.monthly_usd or self.anomaly_usd) and not self.emails:
            raise ValueError("monthlyUsd and anomalyUsd need emails: a warning that nobody gets is none")
        if (self.anomaly_usd is None) != (self.anomaly_monitor is None):
            raise ValueError(
                "anomalyUsd and anomalyMonitor go together: set anomalyMonitor to services, to tag in a payer account, or "
                "to the ARN of a monitor that the account has"
            )
        return self


class OfficeHours(Document):
    """Hours in which models run; outside of them models scale to zero and their nodes are removed."""

    start: Cron
    """Start, as a cron expression such as `0 7 * * 1-5`."""
    end: Cron
    """End, as a cron expression such as `0 19 * * 1-5`."""
    timezone: TimeZone = "UTC"
    """IANA time zone, such as Europe/Berlin."""

    @model_validator(mode="after")
    def _begins_and_ends(self) -> Self:
        begins_and_ends(self.start, self.end)
        return self
