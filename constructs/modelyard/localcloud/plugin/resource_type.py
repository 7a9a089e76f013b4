"""The plugin's interface for a CloudFormation type, and the AWS that it acts on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from modelyard.localcloud.journal import EmulationLevel

Properties = Mapping[str, Any]


class RefusedRequest(ValueError):
    """A request that AWS would reject; the text becomes the resource's status reason."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(f'Resource handler returned message: "{message}" (HandlerErrorCode: {code})')


@dataclass(frozen=True)
class ResourceAddress:
    """Stack and logical id of a resource."""

    stack: str
    logical_id: str

    def name(self, limit: int) -> str:
        """A physical name like CloudFormation's: stable for the same address, with its prefix cut to fit
        `limit`."""
        suffix = hashlib.sha256(f"{self.stack}/{self.logical_id}".encode()).hexdigest()[:12]
        return f"{self.stack}-{self.logical_id}"[: limit - 13] + f"-{suffix}"


@dataclass(frozen=True)
class Made:
    """A resource as CloudFormation sees it: `Ref`, the attributes of `Fn::GetAtt`, a line for the journal."""

    physical_id: str
    attributes: Properties = field(default_factory=dict)
    detail: Properties = field(default_factory=dict)


class Aws:
    """Botocore clients of the embedded AWS, for the account and region of the stack."""

    def __init__(self, endpoint_url: str, *, scope: Callable[[], tuple[str, str]]) -> None:
        self._endpoint_url = endpoint_url
        self._scope = scope
        self._clients: dict[tuple[str, str, str], Any] = {}

    @property
    def account(self) -> str:
        return self._scope()[0]

    @property
    def region(self) -> str:
        return self._scope()[1]

    def arn(self, service: str, resource: str) -> str:
        """ARN of a resource in the stack's account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def client(self, service: str) -> Any:
        account, region = self._scope()
        key = (service, account, region)
        if key not in self._clients:
            import botocore.config  # type: ignore[import-untyped]
            import botocore.session  # type: ignore[import-untyped]

            self._clients[key] = botocore.session.Session().create_client(
                service,
                region_name=region,
                endpoint_url=self._endpoint_url,
                aws_access_key_id=account,  # MiniStack takes twelve digits as the account
                aws_secret_access_key="local",
                config=botocore.config.Config(
                    retries={"total_max_attempts": 1},  # an error is an answer
                    s3={"addressing_style": "path"},
                    proxies={},
                ),
            )
        return self._clients[key]


class ResourceType:
    """One CloudFormation type. `delete` may be called for a resource that is already gone."""

    name: ClassVar[str]
    level: ClassVar[EmulationLevel] = EmulationLevel.CREATED
    replaced_by: ClassVar[tuple[str, ...]] = ()  # properties whose change replaces the resource
    completes: ClassVar[bool] = False  # MiniStack's own handler runs first, this one adds to it

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        raise NotImplementedError

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        raise NotImplementedError

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        raise NotImplementedError


class CompletedType(ResourceType):
    """A type that MiniStack has: `check` may reject it first, `complete` adds what is missing."""

    completes = True

    def check(self, aws: Aws, properties: Properties) -> None:
        """Raise `Refused` if AWS would reject it."""

    def check_creation(self, aws: Aws, properties: Properties) -> None:
        """Raise `Refused` if AWS would not create it, although it might update it so."""

    def check_update(self, old: Properties, new: Properties) -> None:
        """Raise `Refused` if AWS would not change `old` to `new` at once."""

    def complete(self, aws: Aws, physical_id: str, properties: Properties) -> Properties:
        """Additional attributes for `Fn::GetAtt`."""
        return {}

    def check_deletion(self, aws: Aws, physical_id: str) -> None:
        """Raise `Refused` if AWS would not delete it."""

    def deleted(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        """Remove what `complete` added."""


def tags_of(properties: Properties) -> dict[str, str]:
    """The `Tags` property as a map."""
    return {str(tag["Key"]): str(tag["Value"]) for tag in properties.get("Tags") or []}


def camel(value: Any) -> Any:
    """The EKS API spells `PolicyArn` as `policyArn`, at every depth."""
    if isinstance(value, Mapping):
        return {key[:1].lower() + key[1:]: camel(item) for key, item in value.items()}
    if isinstance(value, list):
        return [camel(item) for item in value]
    return value


def given(properties: Properties, *names: str) -> dict[str, Any]:
    """The subset of `names` that the template sets."""
    return {name: properties[name] for name in names if properties.get(name) not in (None, "", [])}
