"""Questions to an account. Whatever keeps an answer away becomes a reason that people can act on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from modelyard.hardware.tables import yaml_table

_IAM_PREFIXES = {"efs": "elasticfilesystem", "service-quotas": "servicequotas"}

_DENIED = {"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"}
_THROTTLED = {
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}
_CREDENTIALS = {
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_ACTION = re.compile(r"not authorized to perform: (?P<action>[a-z0-9-]+:[A-Za-z]+)")


@dataclass(frozen=True, order=True)
class Action:
    """One operation of an AWS API. `service` is boto3's name of it."""

    service: str
    operation: str

    @property
    def permission(self) -> str:
        """What IAM calls it."""
        return f"{_IAM_PREFIXES.get(self.service, self.service)}:{self.operation}"


class Unanswered(Exception):
    """A question that the account did not answer; the text says why, for people."""


class NoCredentials(Unanswered):
    """Nothing will be answered: credentials are missing, expired or wrong."""


class Refused(Unanswered):
    """The account understood the question and answered with an error, `code`."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


class Account:
    """An account in one region, through boto3."""

    def __init__(self, session: Any, region: str) -> None:
        self._session = session
        self._clients: dict[str, Any] = {}
        self._unreachable: dict[str, str] = {}
        self.region = region

    def ask(self, action: Action, **parameters: Any) -> dict[str, Any]:
        """The whole answer, however many pages it has.

        Raises:
            Unanswered: there is none; NoCredentials and Refused are kinds of it.
        """
        from botocore import exceptions, xform_name  # type: ignore[import-untyped]

        # One endpoint that does not answer costs its timeouts once, not for every question.
        if reason := self._unreachable.get(action.service):
            raise Unanswered(reason)
        method = xform_name(action.operation)
        try:
            client = self._client(action.service)
            if client.can_paginate(method):
                answer = client.get_paginator(method).paginate(**parameters).build_full_result()
            else:
                answer = getattr(client, method)(**parameters)
        except exceptions.ClientError as error:
            raise _refusal(action, error.response.get("Error", {})) from None
        except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
            self._unreachable[action.service] = f"no answer from {_host(client)} ({type(error).__name__})"
            raise Unanswered(self._unreachable[action.service]) from None
        except exceptions.BotoCoreError as error:
            raise _not_sent(error) from None
        return dict(answer)

    def _client(self, service: str) -> Any:
        from botocore.config import Config  # type: ignore[import-untyped]

        if service not in self._clients:
            # A preflight that hangs is no preflight: boto3 alone would wait a minute five times.
            patience = Config(
                connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
            )
            region = yaml_table("account.yaml")["pricing"]["region"] if service == "pricing" else self.region
            self._clients[service] = self._session.client(service, region_name=region, config=patience)
        return self._clients[service]


def open_account(region: str, profile: str | None = None) -> Account:
    """The account of the credentials that boto3 finds, or of `profile`.

    Raises:
        ModuleNotFoundError: boto3 is not installed.
        NoCredentials: there is no such profile.
    """
    import boto3  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    try:
        return Account(boto3.Session(profile_name=profile, region_name=region), region)
    except BotoCoreError as error:
        raise NoCredentials(str(error)) from None


def _refusal(action: Action, error: dict[str, Any]) -> Unanswered:
    code, message = str(error.get("Code", "Unknown")), " ".join(str(error.get("Message", "")).split())
    code = code.removeprefix("Client.")
    if code in _DENIED:
        named = _ACTION.search(message)
        needed = named["action"] if named else action.permission
        forbidden = ", which a policy denies explicitly" if "explicit deny" in message else ""
        return Refused(f"needs {needed}{forbidden}", code)
    if code in _THROTTLED:
        return Refused("AWS throttles the account; ask again later", code)
    if code in _CREDENTIALS:
        return NoCredentials(f"{code}: {message}")
    return Refused(f"{action.permission} answered {code}: {message}", code)


def _not_sent(error: Exception) -> Unanswered:
    """botocore's own errors: most of them say that it has no credentials."""
    from botocore import exceptions

    credentials = (
        exceptions.CredentialRetrievalError,
        exceptions.NoAuthTokenError,
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.ProfileNotFound,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
        exceptions.UnknownCredentialError,
    )
    text = " ".join(str(error).split())
    return NoCredentials(text) if isinstance(error, credentials) else Unanswered(text)


def _host(client: Any) -> str:
    return str(client.meta.endpoint_url).partition("://")[2]
