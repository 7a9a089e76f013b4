"""Cost alerts: a budget, cost anomalies, and unused reservations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_ce as ce
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey

_SENDERS = ("budgets.amazonaws.com", "costalerts.amazonaws.com", "cloudwatch.amazonaws.com")


class CostAlarms(Construct):
    """An encrypted SNS topic for budgets, anomaly detection and alarms, with e-mail subscriptions.

    The budget filters by the tag `tag`. Activate it once as a cost allocation tag in the payer's billing
    console; costs are tagged from that day on.

    Args:
        name: Name of budget and monitor, unique in the account.
        tag: Key and value to filter by.
        emails: Subscribers; each has to confirm.
        monthly_usd: Budget in US dollars per month; default: no budget.
        alert_at_percent: Percentages of the budget that trigger an alert.
        anomaly_usd: US dollars above the expected cost that trigger an alert; default: no anomaly detection.
        anomaly_monitor: The monitor of anomalies: an ARN, `services` to create one of all the account's
            services (an account can have one, and many have it), or `tag` to create one that filters by
            `tag` (in a payer account only).
        reservations: Capacity reservation (cr-…) to the pool that pays for it.
        unused_hours: Hours after which idle instances of a reservation trigger an alert.
        removal_policy: What happens to the key when its stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        tag: tuple[str, str],
        emails: Sequence[str],
        monthly_usd: int | None = None,
        alert_at_percent: Sequence[int] = (50, 80, 100),
        anomaly_usd: int | None = None,
        anomaly_monitor: str = "services",
        reservations: Mapping[str, str] | None = None,
        unused_hours: int = 3,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self._name = name
        self._tag = tag
        self.key = EncryptionKey(
            self, "Key", description="Warnings about cost", refuse_grants=True, removal_policy=removal_policy
        )
        """Encrypts the topic."""
        self.topic = sns.Topic(self, "Topic", master_key=self.key, enforce_ssl=True)
        """Receives every alert."""
        self._admit_senders()
        for email in emails:
            self.topic.add_subscription(subscriptions.EmailSubscription(email))
        if monthly_usd:
            self._budget(monthly_usd, alert_at_percent)
        if anomaly_usd:
            self._anomalies(anomaly_usd, anomaly_monitor)
        for reservation, pool in sorted((reservations or {}).items()):
            self._unused(reservation, pool, unused_hours)

    def _admit_senders(self) -> None:
        account = Stack.of(self).account
        mine = {"StringEquals": {"aws:SourceAccount": account}}
        for service in _SENDERS:
            sender = iam.ServicePrincipal(service, conditions=mine)
            self.topic.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sns:Publish"], principals=[sender], resources=[self.topic.topic_arn]
                )
            )
            self.key.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["kms:Decrypt", "kms:GenerateDataKey"], principals=[sender], resources=["*"]
                )
            )

    def _budget(self, monthly_usd: int, percents: Sequence[int]) -> None:
        listener = budgets.CfnBudget.SubscriberProperty(subscription_type="SNS", address=self.topic.topic_arn)

        def at(percent: int, kind: str) -> budgets.CfnBudget.NotificationWithSubscribersProperty:
            return budgets.CfnBudget.NotificationWithSubscribersProperty(
                notification=budgets.CfnBudget.NotificationProperty(
                    comparison_operator="GREATER_THAN",
                    notification_type=kind,
                    threshold=percent,
                    threshold_type="PERCENTAGE",
                ),
                subscribers=[listener],
            )

        key, value = self._tag
        budget = budgets.CfnBudget(
            self,
            "Budget",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_name=self._name,
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=monthly_usd, unit="USD"),
                # Cost Explorer prefixes user-defined tags with this.
                cost_filters={"TagKeyValue": [f"user:{key}${value}"]},
            ),
            notifications_with_subscribers=[
                *(at(percent, "ACTUAL") for percent in percents),
                at(max(percents), "FORECASTED"),
            ],
        )
        # Budgets checks at creation whether it may publish.
        budget.node.add_dependency(self.topic)

    def _anomalies(self, least_usd: int, monitor: str) -> None:
        subscription = ce.CfnAnomalySubscription(
            self,
            "AnomalySubscription",
            subscription_name=self._name,
            frequency="IMMEDIATE",  # the only frequency for SNS
            monitor_arn_list=[monitor if monitor.startswith("arn:") else self._monitor(monitor)],
            subscribers=[
                ce.CfnAnomalySubscription.SubscriberProperty(type="SNS", address=self.topic.topic_arn)
            ],
            threshold_expression=json.dumps(
                {
                    "Dimensions": {
                        "Key": "ANOMALY_TOTAL_IMPACT_ABSOLUTE",
                        "MatchOptions": ["GREATER_THAN_OR_EQUAL"],
                        "Values": [str(least_usd)],
                    }
                }
            ),
        )
        subscription.node.add_dependency(self.topic)

    def _monitor(self, kind: str) -> str:
        key, value = self._tag
        # Monitors of tags are refused outside of the payer account (Cost Management guide, getting started
        # with anomaly detection), and so is a second one of services anywhere.
        monitor = (
            ce.CfnAnomalyMonitor(
                self,
                "AnomalyMonitor",
                monitor_name=self._name,
                monitor_type="CUSTOM",
                monitor_specification=json.dumps({"Tags": {"Key": key, "Values": [value]}}),
            )
            if kind == "tag"
            else ce.CfnAnomalyMonitor(
                self,
                "ServicesMonitor",
                monitor_name=self._name,
                monitor_type="DIMENSIONAL",
                monitor_dimension="SERVICE",
            )
        )
        return monitor.attr_monitor_arn

    def _unused(self, reservation: str, pool: str, hours: int) -> None:
        alarm = cloudwatch.Alarm(
            self,
            f"Unused-{reservation}",
            alarm_description=f"Capacity reservation {reservation} of pool {pool} has had idle instances for {hours} hours: "
            "they are paid for",
            metric=cloudwatch.Metric(
                namespace="AWS/EC2CapacityReservations",
                metric_name="AvailableInstanceCount",
                dimensions_map={"CapacityReservationId": reservation},
                statistic="Minimum",
                period=Duration.hours(1),
            ),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=hours,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,  # the reservation has not started, or has ended
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
