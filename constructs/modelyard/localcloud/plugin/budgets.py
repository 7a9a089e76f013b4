"""The budget type: the API exists, the CloudFormation type does not."""

from __future__ import annotations

from typing import Any

from modelyard.localcloud.plugin.resource_type import Aws, Made, Properties, ResourceAddress, ResourceType


class Budget(ResourceType):
    name = "AWS::Budgets::Budget"

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        budget = self._budget(place, properties["Budget"])
        for notified in properties.get("NotificationsWithSubscribers") or []:
            for subscriber in notified["Subscribers"]:
                if subscriber["SubscriptionType"] == "SNS":
                    aws.client("sns").get_topic_attributes(TopicArn=subscriber["Address"])
        aws.client("budgets").create_budget(
            AccountId=aws.account,
            Budget=budget,
            NotificationsWithSubscribers=[
                {
                    "Notification": {
                        **notified["Notification"],
                        "Threshold": float(notified["Notification"]["Threshold"]),
                    },
                    "Subscribers": notified["Subscribers"],
                }
                for notified in properties.get("NotificationsWithSubscribers") or []
            ],
        )
        return Made(budget["BudgetName"])

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        self.delete(aws, physical_id, old)
        return self.create(aws, place, new)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("budgets").delete_budget(AccountId=aws.account, BudgetName=physical_id)

    @staticmethod
    def _budget(place: ResourceAddress, budget: Properties) -> dict[str, Any]:
        limit = budget["BudgetLimit"]
        return {
            **budget,
            "BudgetName": budget.get("BudgetName") or place.name(100),
            "BudgetLimit": {"Amount": str(limit["Amount"]), "Unit": limit["Unit"]},
        }


TYPES: tuple[ResourceType, ...] = (Budget(),)
