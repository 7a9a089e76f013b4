"""Who is told of alerts: topics, Slack channels and PagerDuty services of an environment."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from modelyard.spec.document import Document, SecretName
from modelyard.spec.governance import Email
from modelyard.spec.operation import TeamName

TopicArn = Annotated[
    str, Field(pattern=r"^arn:aws[a-z-]*:sns:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:[A-Za-z0-9_-]{1,256}$")
]
AlertSeverity = Literal["critical", "warning", "info"]


class AlertTopic(Document):
    """An SNS topic: ours, with subscribers, or one that the account has."""

    emails: tuple[Email, ...] = ()
    """Subscribers of a topic that is created; each has to confirm once."""
    topic: TopicArn | None = None
    """An existing topic instead; its policy and its key must let this account publish."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.emails) == (self.topic is not None):
            raise ValueError(
                "sns needs either emails, for a topic that is created, or topic, for an existing one"
            )
        return self


class SlackChannel(Document):
    """A channel, through an incoming webhook."""

    webhook: SecretName
    """Logical name of the secret with the webhook's URL."""
    channel: Annotated[str, Field(pattern=r"^[#@][A-Za-z0-9._-]{1,79}$")]
    """Channel or person, such as `#llm-on-call`."""


class Receiver(Document):
    """Somebody who is told of alerts, in exactly one way."""

    sns: AlertTopic | None = None
    """By a topic, such as `{emails: [on-call@example.com]}`."""
    slack: SlackChannel | None = None
    """In a channel."""
    pager_duty: SecretName | None = None
    """Logical name of the secret with the integration key of a PagerDuty service (Events API v2)."""
    severities: Annotated[tuple[AlertSeverity, ...], Field(min_length=1)] = ("critical", "warning")
    """Of which alerts: `critical` pages, `warning` waits until morning, `info` is for the cost owner."""
    teams: tuple[TeamName, ...] = ()
    """Only of these teams' models (`owner.team`); default: of all models, and of the platform."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = {"sns": self.sns, "slack": self.slack, "pagerDuty": self.pager_duty}
        if sum(way is not None for way in ways.values()) != 1:
            raise ValueError(f"needs exactly one of {', '.join(ways)}")
        return self

    @property
    def secret(self) -> str | None:
        """Logical name of its secret, if it has one."""
        return self.slack.webhook if self.slack else self.pager_duty
