"""boto3's errors as reasons that people can act on."""

from __future__ import annotations

import re
from typing import Any

from modelyard.live.api.answers import NoCredentials, Refusal, Unanswered

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


def refusal(permission: str, error: Any) -> Unanswered:
    """A ClientError: AWS answered with an error."""
    answer, said = error.response.get("Error", {}), str(error)
    code, message = str(answer.get("Code", "Unknown")), " ".join(str(answer.get("Message", "")).split())
    code = code.removeprefix("Client.")
    if code in _DENIED:
        # Only the message distinguishes these two.
        named = _ACTION.search(message)
        needed = named["action"] if named else permission
        forbidden = ", which a policy denies explicitly" if "explicit deny" in message else ""
        return Refusal(f"needs {needed}{forbidden}", code, said)
    if code in _THROTTLED:
        return Refusal("AWS throttles the account; ask again later", code, said)
    if code in _CREDENTIALS:
        return NoCredentials(f"{code}: {message}", said)
    return Refusal(f"{permission} answered {code}: {message}", code, said)


def not_sent(error: Exception) -> Unanswered:
    """botocore's own errors, most of them about missing credentials."""
    from botocore import exceptions  # type: ignore[import-untyped]

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
    return (NoCredentials if isinstance(error, credentials) else Unanswered)(text, str(error))
