"""Who is told that the pipeline waits for an approval, or that it has failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey

_EVENTS: Final[Mapping[str, tuple[str, Mapping[str, Sequence[str]]]]] = {
    "Ended": ("CodePipeline Pipeline Execution State Change", {"state": ("FAILED", "STOPPED")}),
    "Waits": ("CodePipeline Action Execution State Change", {"state": ("STARTED", "FAILED")}),
}
"""Detail types and states of CodePipeline's events (CodePipeline user guide, detect-state-changes)."""


class PipelineNotices(Construct):
    """An encrypted topic with an event for each approval that waits or was refused, and each execution that
    has failed or was stopped.

    Args:
        pipeline: Name of the pipeline.
        emails: Subscribed to the topic; each has to confirm.
        topic_arn: An existing topic instead, whose policy and key let EventBridge publish.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        pipeline: str,
        emails: Sequence[str] = (),
        topic_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.topic = sns.Topic.from_topic_arn(self, "Topic", topic_arn) if topic_arn else self._made(emails)
        """Receives every event."""
        for name, (kind, detail) in _EVENTS.items():
            wanted: dict[str, Any] = {
                "pipeline": [pipeline],
                **{key: list(values) for key, values in detail.items()},
            }
            if name == "Waits":
                wanted["type"] = {"category": ["Approval"]}
            rule = events.Rule(
                self,
                name,
                description=f"{pipeline}: {kind}",
                event_pattern=events.EventPattern(
                    source=["aws.codepipeline"], detail_type=[kind], detail=wanted
                ),
            )
            rule.add_target(
                targets.SnsTopic(
                    self.topic,
                    message=events.RuleTargetInput.from_text(
                        f"{pipeline}: {events.EventField.from_path('$.detail.state')} "
                        f"(execution {events.EventField.from_path('$.detail.execution-id')}, {events.EventField.time})"
                    ),
                )
            )

    def _made(self, emails: Sequence[str]) -> sns.Topic:
        key = EncryptionKey(self, "Key", description="Notices of the pipeline", refuse_grants=True)
        # Without a condition: EventBridge names neither account nor rule to KMS (SNS developer guide,
        # sns-key-management), and every notice would be lost in silence.
        key.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                resources=["*"],
            )
        )
        topic = sns.Topic(self, "Topic", master_key=key, enforce_ssl=True)
        for email in emails:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic
