"""Resources that boto3 finds in the embedded AWS, compared with the stacks and the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from modelyard.localcloud import journal, lookup
from modelyard.localcloud.deployment import TOOLKIT_STACK
from modelyard.localcloud.endpoint import Clients, values
from modelyard.localcloud.journal import EmulationLevel, Entry
from modelyard.localcloud.lookup import Subject


class Presence(StrEnum):
    """A journal level that boto3 confirmed, or why it was not confirmed."""

    CREATED = "created"
    RECORDED = "recorded"
    IGNORED = "ignored"
    MISSING = "missing"  # the journal says created, but boto3 does not find it
    UNCHECKED = "unchecked"  # there is no lookup for this type


@dataclass(frozen=True, kw_only=True)
class StackState:
    name: str
    status: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class StackFailure:
    """One failed event of a stack that was not created."""

    stack: str
    status: str
    type: str
    logical_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class InventoryRow:
    """One resource of one stack."""

    stack: str
    type: str
    logical_id: str
    physical_id: str
    presence: Presence
    retained: bool = False  # its DeletionPolicy keeps it when the stack is deleted


@dataclass(frozen=True, kw_only=True)
class StackResource:
    """A resource from DescribeStackResources and the template."""

    stack: str
    type: str
    logical_id: str
    physical_id: str
    retained: bool = False


def judge(
    resources: Sequence[StackResource],
    claims: Mapping[tuple[str, str], Entry],
    existing: set[str],
    unchecked: set[str],
) -> list[InventoryRow]:
    """Match the stacks' resources with the journal and with what boto3 found, by `stack/logical id`."""
    rows = []
    for resource in resources:
        entry = claims.get((resource.stack, resource.logical_id))
        place = f"{resource.stack}/{resource.logical_id}"
        if entry is not None and entry.level is not EmulationLevel.CREATED:
            presence = Presence(entry.level.value)
        elif place in unchecked:
            presence = Presence.UNCHECKED
        else:
            # A resource that is not in the journal is judged like a created one.
            presence = Presence.CREATED if place in existing else Presence.MISSING
        rows.append(
            InventoryRow(
                stack=resource.stack,
                type=resource.type,
                logical_id=resource.logical_id,
                physical_id=resource.physical_id,
                presence=presence,
                retained=resource.retained,
            )
        )
    return rows


def take(clients: Clients, entries: list[Entry]) -> list[InventoryRow]:
    """Every resource of the app's stacks, looked up."""
    resources = _stack_resources(clients)
    claims = journal.current(entries)
    subjects: dict[str, Subject] = {}
    for resource in resources:
        entry = claims.get((resource.stack, resource.logical_id))
        if entry is None or entry.level is EmulationLevel.CREATED:
            subjects[f"{resource.stack}/{resource.logical_id}"] = Subject(
                type=resource.type,
                physical_id=resource.physical_id,
                detail=entry.detail if entry else {},
            )
    existing, unchecked = lookup.find(clients, subjects)
    return judge(resources, claims, existing, unchecked)


def stacks(clients: Clients) -> list[StackState]:
    """The stacks of the app, without the bootstrap stack."""
    found = values(clients, "cloudformation", "describe_stacks", "Stacks[]")
    return [
        StackState(
            name=stack["StackName"],
            status=stack["StackStatus"],
            reason=stack.get("StackStatusReason", ""),
        )
        for stack in found
        if stack["StackName"] != TOOLKIT_STACK and stack["StackStatus"] != "DELETE_COMPLETE"
    ]


def is_bootstrapped(clients: Clients) -> bool:
    found = values(clients, "cloudformation", "describe_stacks", "Stacks[]")
    return any(
        stack["StackName"] == TOOLKIT_STACK and stack["StackStatus"].endswith("_COMPLETE") for stack in found
    )


def still_there(clients: Clients, rows: Sequence[InventoryRow], entries: list[Entry]) -> list[InventoryRow]:
    """Of the rows seen before a destroy, those that boto3 still finds and that are not retained.

    `entries`: the journal from before the destroy, which says where to look.
    """
    claims = journal.current(entries)
    subjects = {
        f"{row.stack}/{row.logical_id}": Subject(
            type=row.type,
            physical_id=row.physical_id,
            detail=claims[row.stack, row.logical_id].detail if (row.stack, row.logical_id) in claims else {},
        )
        for row in rows
        # A default security group without rules counts as gone; its VPC is looked up anyway.
        if row.presence is Presence.CREATED and not row.retained
    }
    existing, _ = lookup.find(clients, subjects)
    return [row for row in rows if f"{row.stack}/{row.logical_id}" in existing]


def failures(clients: Clients) -> list[StackFailure]:
    """Why stacks failed: their failed events, oldest first, without repeated reasons."""
    found: list[StackFailure] = []
    for stack in stacks(clients):
        if not any(word in stack.status for word in ("FAILED", "ROLLBACK")):
            continue
        path = "StackEvents[]"
        events = values(clients, "cloudformation", "describe_stack_events", path, StackName=stack.name)
        for event in reversed(events):
            if event["ResourceStatus"].endswith("FAILED"):
                failure = StackFailure(
                    stack=stack.name,
                    status=stack.status,
                    type=event["ResourceType"],
                    logical_id=event["LogicalResourceId"],
                    reason=event.get("ResourceStatusReason", ""),
                )
                if failure not in found:
                    found.append(failure)
    return found


def _stack_resources(clients: Clients) -> list[StackResource]:
    cloudformation = clients.get("cloudformation")
    found = []
    for stack in stacks(clients):
        template = cloudformation.get_template(StackName=stack.name)["TemplateBody"]
        declared = template.get("Resources", {}) if isinstance(template, Mapping) else {}
        listed = cloudformation.describe_stack_resources(StackName=stack.name)["StackResources"]
        for resource in listed:
            if resource["ResourceStatus"] == "DELETE_COMPLETE":
                continue
            policy = str(declared.get(resource["LogicalResourceId"], {}).get("DeletionPolicy", ""))
            found.append(
                StackResource(
                    stack=stack.name,
                    type=resource["ResourceType"],
                    logical_id=resource["LogicalResourceId"],
                    physical_id=resource.get("PhysicalResourceId", ""),
                    retained=policy.startswith("Retain"),
                )
            )
    return found
