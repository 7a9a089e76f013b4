"""Write the journal where CloudFormation acts on a resource, whichever handler its type has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from modelyard.localcloud.journal import Action, EmulationLevel, Entry, Journal
from modelyard.localcloud.plugin.resource_type import Properties, ResourceAddress, ResourceType, given

_IGNORED = {"AWS::CDK::Metadata"}

# Types whose physical id is not enough to look them up later.
_WHERE_TO_LOOK: dict[str, tuple[str, ...]] = {
    "AWS::IAM::Policy": ("PolicyName", "Roles", "Users", "Groups"),
    "AWS::Lambda::Permission": ("FunctionName",),
    "AWS::S3::BucketPolicy": ("Bucket",),
    "AWS::SNS::TopicPolicy": ("Topics",),
    "AWS::SQS::QueuePolicy": ("Queues",),
    "AWS::EC2::VPCGatewayAttachment": ("VpcId", "InternetGatewayId"),
}


def _level(type_name: str, ours: dict[str, ResourceType]) -> EmulationLevel:
    if type_name in ours:
        return ours[type_name].level
    if type_name in _IGNORED:
        return EmulationLevel.IGNORED
    # A custom resource's Lambda returned SUCCESS; its effects are not known.
    if type_name.startswith(("Custom::", "AWS::CloudFormation::")):
        return EmulationLevel.RECORDED
    return EmulationLevel.CREATED


def _detail(type_name: str, properties: Properties) -> Properties:
    if type_name.startswith("Custom::"):
        return {"note": "its own Lambda ran and reported success"}
    return given(properties, *_WHERE_TO_LOOK.get(type_name, ()))


def keep(
    stacks: Any,
    ours: dict[str, ResourceType],
    journal: Journal,
    details: dict[tuple[str, str], Properties],
) -> None:
    provision, update, delete = stacks._provision_resource, stacks._update_resource, stacks._delete_resource

    @contextmanager
    def journaled(
        action: Action, type_name: str, place: ResourceAddress, physical_id: str, properties: Properties
    ) -> Iterator[list[str]]:
        outcome = [physical_id]
        error = ""
        try:
            yield outcome
        except Exception as failure:
            error = str(failure)
            raise
        finally:
            journal.write(
                Entry(
                    action=action,
                    stack=place.stack,
                    logical_id=place.logical_id,
                    type=type_name,
                    physical_id=outcome[0],
                    level=_level(type_name, ours),
                    detail=details.get((place.stack, place.logical_id)) or _detail(type_name, properties),
                    error=error,
                )
            )

    def provisioned(type_name: str, logical_id: str, properties: Properties, stack: str) -> Any:
        with journaled(
            Action.CREATE, type_name, ResourceAddress(stack, logical_id), "", properties
        ) as outcome:
            physical_id, attributes = provision(type_name, logical_id, properties, stack)
            outcome[0] = physical_id
            return physical_id, attributes

    def updated(
        type_name: str,
        physical_id: str,
        old: Properties,
        new: Properties,
        stack: str,
        logical_id: str,
        attributes: Any = None,
    ) -> Any:
        if old == new:  # MiniStack calls this for every resource of an updated stack
            return update(type_name, physical_id, old, new, stack, logical_id, attributes)
        with journaled(
            Action.UPDATE, type_name, ResourceAddress(stack, logical_id), physical_id, new
        ) as outcome:
            answer = update(type_name, physical_id, old, new, stack, logical_id, attributes)
            outcome[0] = answer[0]
            return answer

    def deleted(
        type_name: str, physical_id: str, properties: Properties, stack: str = "", logical_id: str = ""
    ) -> None:
        with journaled(Action.DELETE, type_name, ResourceAddress(stack, logical_id), physical_id, properties):
            delete(type_name, physical_id, properties, stack, logical_id)

    stacks._provision_resource = provisioned
    stacks._update_resource = updated
    stacks._delete_resource = deleted
