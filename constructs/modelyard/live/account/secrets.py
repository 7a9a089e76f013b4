"""Secrets by logical name: whether they exist and hold a value, and a way to set it.

A value goes from standard input, a prompt or a file straight into Secrets Manager. It is never read back, and
appears in no message, exception or log.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Account, Ask, Operation
from modelyard.live.diagnosis import AccountCheck, Case, Diagnosis, ok, one_by_one, problem
from modelyard.reading import NotJson, parse_json
from modelyard.spec import Catalogue, Environment

_DESCRIBE = Operation("secretsmanager", "DescribeSecret")
_PUT = Operation("secretsmanager", "PutSecretValue")
_CREATE = Operation("secretsmanager", "CreateSecret")

CERTIFICATE_KEYS = ("tls.crt", "tls.key")
MOST_BYTES = 65536
"""Limit of Secrets Manager: SecretString of PutSecretValue, AWS Secrets Manager API reference."""

SecretKind = Literal["key", "master key", "certificate", "token", "webhook"]


class WrongValue(Exception):
    """The value is invalid. The text says why and never quotes it."""


@dataclass(frozen=True)
class StoredSecret:
    """A secret as Secrets Manager describes it, without its value."""

    name: str
    current: str | None
    """Version that the cluster reads; None if no value was ever set."""
    key: str
    """KMS key that encrypts it: its id or alias, or the AWS-managed key."""
    changed: datetime | None
    rotation: bool
    deleted: datetime | None


def stored_secret(ask: Ask, name: str) -> StoredSecret | None:
    """The secret called `name` in Secrets Manager; None if it does not exist."""
    try:
        found = ask(_DESCRIBE, SecretId=name)
    except Refusal as refused:
        if refused.code == "ResourceNotFoundException":
            return None
        raise
    stages = found.get("VersionIdsToStages") or {}
    return StoredSecret(
        name,
        next((version for version, labels in stages.items() if "AWSCURRENT" in labels), None),
        found.get("KmsKeyId") or "aws/secretsmanager (managed by AWS)",
        found.get("LastChangedDate"),
        bool(found.get("RotationEnabled")),
        found.get("DeletedDate"),
    )


def judged(environment: Environment, env: str, logical: str, found: StoredSecret | None) -> Diagnosis:
    """Whether the cluster can read the secret behind `logical`; `env` is the environment's name on the
    command line."""
    name = environment.secrets[logical]
    command = f"modelyard secrets set {logical} --env {env}"
    if found is None:
        return problem(
            logical,
            f"{name} does not exist",
            f"{command} # after `cdk deploy Secrets`",
        )
    if found.deleted:
        return problem(
            logical,
            f"{name} is marked for deletion on {found.deleted:%Y-%m-%d}",
            f"aws secretsmanager restore-secret --secret-id {name} --region {environment.region}",
        )
    if found.current is None:
        return problem(logical, f"{name} holds no value", command)
    return ok(
        logical,
        f"{name} holds a value, key {found.key}, "
        + (f"last changed {found.changed:%Y-%m-%d}, " if found.changed else "")
        + f"rotation {'on' if found.rotation else 'off'}",
    )


def _judge(ask: Ask, case: Case) -> Iterator[Diagnosis]:
    environment = case.environment

    def judge(logical: str) -> Diagnosis:
        return judged(environment, case.env, logical, stored_secret(ask, environment.secrets[logical]))

    yield from one_by_one(environment.secrets, judge)


SECRETS = AccountCheck("secrets", (_DESCRIBE,), _judge)


def rotatable(logical: str, environment: Environment, catalogue: Catalogue) -> bool:
    """Whether a random value may replace the secret: under every logical name that refers to it."""
    target = environment.secrets[logical]
    same = [name for name, secret in environment.secrets.items() if secret == target]
    return all(kind_of(name, environment, catalogue) in ("key", "master key") for name in same)


def kind_of(logical: str, environment: Environment, catalogue: Catalogue) -> SecretKind:
    """What the value is for. Modelyard generates only keys that clients send; all other values come from
    third parties."""
    gateways = (environment.gateways.internal, environment.gateways.public)
    if any(gateway and gateway.certificate == logical for gateway in gateways):
        return "certificate"
    receivers = environment.monitoring.receivers.values()
    if any(each.slack and each.slack.webhook == logical for each in receivers):
        return "webhook"
    if any(model.model.auth == logical for model in catalogue.models.values()):
        return "token"
    if environment.litellm and environment.litellm.master_key == logical:
        return "master key"
    return "key" if models_with_key(logical, environment, catalogue) else "token"


def models_with_key(logical: str, environment: Environment, catalogue: Catalogue) -> tuple[str, ...]:
    """Models whose clients must send the value, after the environment's overrides."""
    found = []
    for name, model in catalogue.models.items():
        override = environment.overrides.get(name)
        access = override.access if override and override.access else model.access
        if access.api_key == logical:
            found.append(name)
    return tuple(found)


def checked_value(text: str, kind: SecretKind) -> tuple[str, str]:
    """The value to store, without a trailing newline, and a warning or an empty string.

    Raises:
        WrongValue: no reader of the secret could use it.
    """
    value = text.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise WrongValue("the value is empty")
    if len(value.encode()) > MOST_BYTES:
        raise WrongValue(f"the value has more than {MOST_BYTES} bytes, the most that Secrets Manager takes")
    if kind == "certificate":
        _check_certificate(value)
        return value, ""
    if kind == "webhook" and not re.fullmatch(r"https://[^\s/]+/\S+", value):
        raise WrongValue("a webhook is an address such as https://hooks.slack.com/services/...; this is none")
    spaces = value != value.strip()
    return value, "the value begins or ends with white space, which is part of it" if spaces else ""


def _check_certificate(value: str) -> None:
    wanted = "JSON with the keys " + " and ".join(CERTIFICATE_KEYS)
    try:
        document = parse_json(value)
    except NotJson:
        # `from None`: the cause quotes a part of the document.
        raise WrongValue(f"a certificate is {wanted}; this is no JSON") from None
    if not isinstance(document, dict):
        raise WrongValue(f"a certificate is {wanted}; this is no object")
    missing = [
        key for key in CERTIFICATE_KEYS if not isinstance(document.get(key), str) or not document[key].strip()
    ]
    if missing:
        raise WrongValue(f"a certificate is {wanted}; {' and '.join(missing)} is missing or empty")
    for key, marker in zip(CERTIFICATE_KEYS, ("CERTIFICATE-----", "PRIVATE KEY-----"), strict=True):
        if "-----BEGIN " not in document[key] or marker not in document[key]:
            raise WrongValue(f"{key} holds no PEM block that ends with {marker}")


def new_key(kind: SecretKind) -> str:
    """A random key of 256 bits. LiteLLM requires its keys to begin with sk-."""
    return ("sk-" if kind == "master key" else "") + secrets.token_urlsafe(32)


def store(account: Account, name: str, value: str, *, create: bool = False) -> str:
    """Make `value` the current version of secret `name`, and return its version id; the previous one becomes
    AWSPREVIOUS."""
    with _no_debug_logs():
        if create:
            answer = account.ask(_CREATE, Name=name, SecretString=value)
        else:
            answer = account.ask(_PUT, SecretId=name, SecretString=value)
    return str(answer["VersionId"])


@contextmanager
def _no_debug_logs() -> Iterator[None]:
    """At level DEBUG, botocore and urllib3 log whole requests."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.DEBUG))
    try:
        yield
    finally:
        logging.disable(before)
