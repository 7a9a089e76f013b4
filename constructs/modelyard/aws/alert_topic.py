"""Where Alertmanager publishes: an encrypted SNS topic with e-mail subscriptions, and existing topics."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import ALERTS_ACCOUNT


class AlertPublisher(Construct):
    """A topic for people, and the role with which one service account publishes to it and to others.

    Args:
        cluster_name: The EKS cluster.
        topic_name: Name of the topic, which Alertmanager's configuration repeats.
        emails: Subscribers of the topic; each has to confirm. Without any, no topic is created.
        topics: ARNs of existing topics; their policies and keys must admit this account.
        namespace: Namespace of Alertmanager.
        service_account: Service account of Alertmanager.
        removal_policy: What happens to the key when its stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        topic_name: str,
        emails: Sequence[str] = (),
        topics: Sequence[str] = (),
        namespace: str = "monitoring",
        service_account: str = ALERTS_ACCOUNT,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.publisher = PodIdentityRole(self, "PublisherRole", description="Alertmanager: publish alerts")
        """IAM role of Alertmanager."""
        if topics:
            self.publisher.add_to_policy(iam.PolicyStatement(actions=["sns:Publish"], resources=list(topics)))
        self.topic: sns.Topic | None = self._topic(topic_name, emails, removal_policy) if emails else None
        """The topic, if it has subscribers."""
        self.publisher.associate(
            cluster_name=cluster_name, namespace=namespace, service_account=service_account
        )

    def _topic(self, name: str, emails: Sequence[str], removal_policy: RemovalPolicy) -> sns.Topic:
        key = EncryptionKey(
            self, "Key", description="Alerts", refuse_grants=True, removal_policy=removal_policy
        )
        topic = sns.Topic(self, "Topic", topic_name=name, master_key=key, enforce_ssl=True)
        for email in emails:
            topic.add_subscription(subscriptions.EmailSubscription(email))
        self.publisher.add_to_policy(
            iam.PolicyStatement(actions=["sns:Publish"], resources=[topic.topic_arn])
        )
        self.publisher.add_to_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key.key_arn],
                conditions={"StringEquals": {"kms:ViaService": f"sns.{Stack.of(self).region}.amazonaws.com"}},
            )
        )
        return topic
