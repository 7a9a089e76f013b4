"""Calls to an AWS account. Every failure becomes a reason that people can act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from modelyard.hardware.tables import yaml_table
from modelyard.live.api.answers import NoCredentials, Unanswered
from modelyard.live.api.aws_errors import not_sent, refusal

_IAM_PREFIXES = {"efs": "elasticfilesystem", "service-quotas": "servicequotas"}


@dataclass(frozen=True, order=True)
class Operation:
    """One operation of an AWS API. `service` is boto3's name for it."""

    service: str
    name: str

    @property
    def permission(self) -> str:
        """Its name in IAM."""
        return f"{_IAM_PREFIXES.get(self.service, self.service)}:{self.name}"


IDENTITY = Operation("sts", "GetCallerIdentity")
_ASSUME = Operation("sts", "AssumeRole")


class Ask(Protocol):
    """A call to the account, see `Account.ask`."""

    def __call__(self, operation: Operation, **parameters: Any) -> dict[str, Any]: ...


class Account:
    """An account in one region, through boto3; `credentials` override those of the session."""

    def __init__(self, session: Any, region: str, credentials: Mapping[str, str] | None = None) -> None:
        self._session = session
        self._credentials = dict(credentials or {})
        self._clients: dict[str, Any] = {}
        self._unreachable: dict[str, tuple[str, str]] = {}
        self.region = region

    def ask(self, operation: Operation, **parameters: Any) -> dict[str, Any]:
        """The whole answer, all pages joined; the body of an object as bytes.

        Raises:
            Unanswered: the call failed; NoCredentials and Refusal are subclasses.
        """
        from botocore import exceptions, xform_name  # type: ignore[import-untyped]

        # An unreachable endpoint costs its timeouts once, not once per call.
        if reason := self._unreachable.get(operation.service):
            raise Unanswered(*reason)
        method = xform_name(operation.name)
        try:
            client = self._client(operation.service)
            if client.can_paginate(method):
                answer = client.get_paginator(method).paginate(**parameters).build_full_result()
            else:
                answer = _read(getattr(client, method)(**parameters))
        except exceptions.ClientError as error:
            raise refusal(operation.permission, error) from None
        except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
            reason = f"no answer from {_host(client)} ({type(error).__name__})", str(error)
            self._unreachable[operation.service] = reason
            raise Unanswered(*reason) from None
        except exceptions.BotoCoreError as error:
            raise not_sent(error) from None
        return dict(answer)

    def as_role(self, role: str, session_name: str) -> Account:
        """The account, accessed as `role`, an ARN.

        Raises:
            Unanswered: the credentials may not assume the role.
        """
        answer = self.ask(_ASSUME, RoleArn=role, RoleSessionName=session_name)["Credentials"]
        credentials = {
            "aws_access_key_id": answer["AccessKeyId"],
            "aws_secret_access_key": answer["SecretAccessKey"],
            "aws_session_token": answer["SessionToken"],
        }
        return Account(self._session, self.region, credentials)

    def _client(self, service: str) -> Any:
        from botocore.config import Config  # type: ignore[import-untyped]

        if service not in self._clients:
            # A preflight must not hang: by default boto3 waits a minute five times.
            patience = Config(
                connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
            )
            region = yaml_table("account.yaml")["pricing"]["region"] if service == "pricing" else self.region
            self._clients[service] = self._session.client(
                service, region_name=region, config=patience, **self._credentials
            )
        return self._clients[service]


def open_account(region: str, profile: str | None = None) -> Account:
    """The account of boto3's default credentials, or of `profile`.

    Raises:
        ModuleNotFoundError: boto3 is not installed.
        NoCredentials: the profile does not exist.
    """
    import boto3  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    try:
        return Account(boto3.Session(profile_name=profile, region_name=region), region)
    except BotoCoreError as error:
        raise NoCredentials(str(error)) from None


def _read(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with an object's body read: the connection may break during that read too."""
    return {**answer, "Body": answer["Body"].read()} if "Body" in answer else answer


def _host(client: Any) -> str:
    return str(client.meta.endpoint_url).partition("://")[2]
