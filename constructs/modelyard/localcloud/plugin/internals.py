"""Every private name of MiniStack that this project uses.

They are no public API and may change in any release, so the exact version is checked first. Used:
the handler table and the replacing-properties table of `cloudformation.provisioners`, the three functions
through which `cloudformation.stacks` acts on a resource (in `journaling`), its rollback, its choice of types
that may block, the caller of custom resources, the account and region of the running request, the records of
EKS, and the functions that answer CloudFormation and EKS requests.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import re
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

from modelyard.localcloud.journal import Journal
from modelyard.localcloud.plugin import journaling
from modelyard.localcloud.plugin.resource_type import (
    Aws,
    CompletedType,
    Made,
    Properties,
    RefusedRequest,
    ResourceAddress,
    ResourceType,
)

VERSION = "1.5.33"
CUSTOM_RESOURCE_LIMIT_S = "120"  # AWS waits an hour for the response of a broken handler

EksKind = Literal["cluster", "node group", "add-on", "access entry", "association"]
_EKS_STORES: dict[EksKind, tuple[str, str]] = {
    "cluster": ("_clusters", ""),
    "node group": ("_nodegroups", "/"),
    "add-on": ("_addons", "/"),
    "access entry": ("_access_entries", "\0"),
    "association": ("_pod_identity_associations", "\0"),
}
HELD_BACK_S = 10.0
_GONE = ("NotFound", "NoSuch")

_log = logging.getLogger("localcloud")


def require_pinned_version() -> None:
    found = importlib.metadata.version("ministack")
    if found != VERSION:
        raise SystemExit(
            f"ministack {VERSION} needed, got {found}: the plugin uses its private names; "
            "run `uv sync --only-group localcloud` in .venv-localcloud or adapt plugin/internals.py"
        )


def request_scope() -> tuple[str, str]:
    """Account and region of the current stack operation."""
    responses = import_module("ministack.core.responses")
    return str(responses.get_account_id()), str(responses.get_region())


def eks_record(kind: EksKind, *key: str) -> dict[str, Any]:
    """MiniStack's own record of an EKS resource, which its Describe operations return."""
    store, separator = _EKS_STORES[kind]
    record: dict[str, Any] = getattr(import_module("ministack.services.eks"), store)[separator.join(key)]
    return record


def set_eks_tags(record: dict[str, Any], arn: str, tags: Mapping[str, str]) -> None:
    """MiniStack's TagResource supports neither associations nor the tags inside a record."""
    record["tags"] = dict(tags)
    import_module("ministack.services.eks")._tags[arn] = dict(tags)


def attach(types: Iterable[ResourceType], aws: Aws, journal: Journal) -> None:
    provisioners = import_module("ministack.services.cloudformation.provisioners")
    stacks = import_module("ministack.services.cloudformation.stacks")
    ours = {kind.name: kind for kind in types}
    details: dict[tuple[str, str], Properties] = {}

    for kind in ours.values():
        inner = provisioners._RESOURCE_HANDLERS.get(kind.name) if kind.completes else None
        provisioners._RESOURCE_HANDLERS[kind.name] = _handlers(kind, inner, aws, details)
        if kind.replaced_by:
            provisioners._REPLACING_PROPERTIES[kind.name] = kind.replaced_by

    _let_block(stacks, ours)
    _limit_custom_resources()
    _answer_when_settled()
    _let_protection_be_turned_off()
    _keep_what_no_rollback_deleted(stacks)
    journaling.keep(stacks, ours, journal, details)
    _log.info("modelyard plugin: %s", ", ".join(sorted(ours)))


def _handlers(
    kind: ResourceType, inner: Any, aws: Aws, details: dict[tuple[str, str], Properties]
) -> dict[str, Any]:
    def noted(place: ResourceAddress, made: Made) -> tuple[str, dict[str, Any]]:
        details[place.stack, place.logical_id] = made.detail
        return made.physical_id, dict(made.attributes)

    def create(logical_id: str, properties: Properties, stack: str) -> tuple[str, dict[str, Any]]:
        place = ResourceAddress(stack, logical_id)
        with _as_aws_says():
            if isinstance(kind, CompletedType):
                kind.check(aws, properties)
                kind.check_creation(aws, properties)
                physical_id, attributes = inner["create"](logical_id, properties, stack)
                more = kind.complete(aws, physical_id, properties)
                return physical_id, {**attributes, **more}
            return noted(place, kind.create(aws, place, properties))

    def update(
        physical_id: str, old: Properties, new: Properties, stack: str, logical_id: str
    ) -> tuple[str, dict[str, Any]]:
        place = ResourceAddress(stack, logical_id)
        with _as_aws_says():
            if isinstance(kind, CompletedType):
                kind.check(aws, new)
                kind.check_update(old, new)
                if "update" not in inner:  # as MiniStack: creating it again under its name changes it
                    physical_id, attributes = inner["create"](logical_id, new, stack)
                elif inner.get("update_with_logical_id"):
                    physical_id, attributes = inner["update"](physical_id, old, new, stack, logical_id)
                else:
                    physical_id, attributes = inner["update"](physical_id, old, new, stack)
                return physical_id, {**attributes, **kind.complete(aws, physical_id, new)}
            return noted(place, kind.update(aws, place, physical_id, old, new))

    def delete(physical_id: str, properties: Properties) -> None:
        with _as_aws_says(gone_is_deleted=True):
            if isinstance(kind, CompletedType):
                kind.check_deletion(aws, physical_id)
                inner["delete"](physical_id, properties)
                kind.deleted(aws, physical_id, properties)
            else:
                kind.delete(aws, physical_id, properties)

    ours = {"create": create, "update": update, "update_with_logical_id": True, "delete": delete}
    return {**(inner or {}), **ours}  # MiniStack's may also import what exists


@contextmanager
def _as_aws_says(*, gone_is_deleted: bool = False) -> Iterator[None]:
    """Turn a client error into CloudFormation's text for an event."""
    import botocore.exceptions  # type: ignore[import-untyped]

    try:
        yield
    except botocore.exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        if gone_is_deleted and any(word in code for word in _GONE):
            return
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
        message = f"{error.response['Error'].get('Message', '')} (Status Code: {status})"
        raise RefusedRequest(message, code) from error
    except botocore.exceptions.ParamValidationError as error:
        raise RefusedRequest(str(error).replace("\n", " "), "InvalidRequest") from error


def _let_block(stacks: Any, ours: dict[str, ResourceType]) -> None:
    """Our handlers call the server that they run in, so they must not block its event loop."""
    original: Callable[[str], bool] = stacks._runs_on_worker_thread
    stacks._runs_on_worker_thread = lambda type_name: type_name in ours or original(type_name)


def _limit_custom_resources() -> None:
    module: Any = import_module("ministack.services.cloudformation.custom_resource")
    original = module.invoke_custom_resource

    def limited(request_type: str, logical_id: str, properties: Properties, *rest: Any, **named: Any) -> Any:
        with_limit = {"ServiceTimeout": CUSTOM_RESOURCE_LIMIT_S, **properties}
        return original(request_type, logical_id, with_limit, *rest, **named)

    module.invoke_custom_resource = limited


def _keep_what_no_rollback_deleted(stacks: Any) -> None:
    """A resource that a rollback cannot delete stays in its stack, and is deleted with it; MiniStack forgets
    it."""
    original = stacks._roll_back_operation

    async def keeping(name: str, stack_id: str, stack: dict[str, Any], *rest: Any, **named: Any) -> None:
        await original(name, stack_id, stack, *rest, **named)
        if stack.get("StackStatus") == "ROLLBACK_FAILED":
            stack.setdefault("_resources", {}).update(stack.get("_rollback_failed", {}))

    stacks._roll_back_operation = keeping


def _let_protection_be_turned_off() -> None:
    """UpdateClusterConfig, which MiniStack's EKS lacks, for the one setting that blocks a deletion."""
    eks: Any = import_module("ministack.services.eks")
    original = eks.handle_request

    async def with_update_config(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, list[str]]
    ) -> Any:
        match = re.fullmatch(r"/clusters/([A-Za-z0-9_-]+)/update-config", path)
        asked = json.loads(body or b"{}") if match and method == "POST" else {}
        if match is None or "deletionProtection" not in asked:
            return await original(method, path, headers, body, query)
        cluster = eks._clusters.get(match[1])
        if cluster is None:
            return eks._error(404, "ResourceNotFoundException", f"No cluster found for name: {match[1]}.")
        cluster["deletionProtection"] = bool(asked["deletionProtection"])
        update = {"update": {"type": "DeletionProtectionUpdate", "status": "Successful"}}
        return 200, {"Content-Type": "application/json"}, json.dumps(update).encode()

    eks.handle_request = with_update_config


def _answer_when_settled() -> None:
    """Delay DescribeStacks while the stack changes.

    The CDK CLI polls every five seconds; here nearly every stack settles before the first answer is due, so a
    deploy of six takes seconds instead of half a minute.
    """
    cloudformation: Any = import_module("ministack.services.cloudformation")
    original = cloudformation.handle_request

    async def settled(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, list[str]]
    ) -> Any:
        fields = urllib.parse.parse_qs(body.decode("utf-8", "replace"))
        if fields.get("Action") == ["DescribeStacks"] and "StackName" in fields:
            name = fields["StackName"][0].rpartition(":stack/")[2].split("/")[0]
            deadline = time.monotonic() + HELD_BACK_S
            while time.monotonic() < deadline:
                status = str((cloudformation._stacks.get(name) or {}).get("StackStatus", ""))
                # A change set under review stays so until it is executed.
                if not status.endswith("IN_PROGRESS") or status == "REVIEW_IN_PROGRESS":
                    break
                await asyncio.sleep(0.02)
        return await original(method, path, headers, body, query)

    cloudformation.handle_request = settled
