"""A fake AWS account: moto, and our own answers, validated by botocore's models, where moto has no API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.loaders import create_loader  # type: ignore[import-untyped]
from botocore.validate import validate_parameters  # type: ignore[import-untyped]

from modelyard.releases import addon_version, addons

ACCOUNT = "123456789012"
"""moto's."""
_LOADER = create_loader()
"""botocore's models, read once: a session alone would parse megabytes of EC2 for each test."""
SUPPORT = datetime.now(UTC) + timedelta(days=300)

Answer = dict[str, Any] | Exception | Callable[[dict[str, Any]], "dict[str, Any] | Exception"]


class Error(Exception):
    """What AWS answers with a status of 400 or more."""

    def __init__(self, code: str, message: str = "no") -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def denied(permission: str, how: str = "because no identity-based policy allows it") -> Error:
    """In the words of IAM."""
    return Error(
        "AccessDeniedException",
        f"User: arn:aws:iam::{ACCOUNT}:user/ann is not authorized to perform: {permission} on resource: * {how}",
    )


def _quota(asked: dict[str, Any], value: float) -> dict[str, Any]:
    return {"Quota": {"QuotaCode": asked["QuotaCode"], "QuotaName": "Running instances", "Value": value}}


@dataclass
class FakeAccount:
    """`answers` come before moto, by IAM's name of the action; `asked` has every call with its parameters."""

    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def permissions(self) -> set[str]:
        return {permission for permission, _ in self.asked}

    def quotas(self, values: dict[str, float], default: float = 10_000) -> None:
        self.answers["servicequotas:GetServiceQuota"] = lambda asked: _quota(
            asked, values.get(asked["QuotaCode"], default)
        )

    def session(self, **settings: Any) -> Any:
        """A boto3 session whose clients are answered by this account."""
        made = boto3.session.Session(**settings)
        made._session.register_component("data_loader", _LOADER)
        made.events.register("before-parameter-build", self._note)
        made.events.register("before-call", self._answer)
        return made

    def _note(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        permission = f"{model.service_model.signing_name}:{model.name}"
        self.asked.append((permission, dict(params)))
        context["asked"] = dict(params)

    def _answer(self, model: Any, context: dict[str, Any], **_: Any) -> Any:
        answer = self.answers.get(f"{model.service_model.signing_name}:{model.name}")
        if callable(answer):
            answer = answer(context["asked"])
        if answer is None:
            return None
        if isinstance(answer, Error):
            error = {"Error": {"Code": answer.code, "Message": answer.message}, "ResponseMetadata": {}}
            return SimpleNamespace(status_code=400), error
        if isinstance(answer, Exception):
            raise answer
        if model.output_shape is not None:
            validate_parameters(answer, model.output_shape)
        return SimpleNamespace(status_code=200), {**answer, "ResponseMetadata": {}}


def healthy(fake: FakeAccount, region: str) -> None:
    """What a good account answers where moto has no API; moto holds the rest."""
    fake.quotas({})
    no_cluster = Error("ResourceNotFoundException", "No cluster found")
    fake.answers |= {
        "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota": {"RequestedQuotas": []},
        "eks:DescribeClusterVersions": {
            "clusterVersions": [
                {
                    "clusterVersion": version,
                    "versionStatus": "STANDARD_SUPPORT",
                    "endOfStandardSupportDate": SUPPORT,
                }
                for version in ("1.35", "1.36")
            ]
        },
        # Which made the secrets that the tests put there.
        "cloudformation:DescribeStacks": stacks(("lab", "secrets"), ("prod", "secrets")),
        "logs:DescribeLogGroups": {"logGroups": []},
        "eks:ListAddons": no_cluster,
        "eks:ListNodegroups": no_cluster,
        "eks:DescribeAddonVersions": offered(),
    }
    session = fake.session(region_name=region)
    session.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="28", Type="String")
    fake.asked.clear()


def stacks(
    *given: tuple[str, str], status: str = "CREATE_COMPLETE", protected: bool = False
) -> dict[str, Any]:
    """Stacks by environment and concern."""
    return {
        "Stacks": [
            {
                "StackName": f"modelyard-{environment}-{concern}",
                "StackStatus": status,
                "CreationTime": datetime.now(UTC),
                "EnableTerminationProtection": protected,
                "Tags": [{"Key": "modelyard:environment", "Value": environment}],
            }
            for environment, concern in given
        ]
    }


def offered(**other: tuple[str, ...]) -> dict[str, Any]:
    """Every add-on at the version that a deploy installs, but for `other` ones by name with `_` for `-`."""
    versions: dict[str, tuple[str, ...]] = {name: (addon_version(name, "1.36"),) for name in addons()}
    versions |= {name.replace("_", "-"): given for name, given in other.items()}
    return {
        "addons": [
            {"addonName": name, "addonVersions": [{"addonVersion": each} for each in given]}
            for name, given in versions.items()
        ]
    }


def addon(
    name: str, version: str, *, status: str = "ACTIVE", others: tuple[str, ...] = ()
) -> dict[str, Answer]:
    """An installed add-on, and `others` as its versions for the cluster."""
    offered = {
        "addons": [
            {
                "addonName": name,
                "addonVersions": [
                    {
                        "addonVersion": each,
                        "compatibilities": [{"clusterVersion": "1.36", "defaultVersion": True}],
                    }
                    for each in others
                ],
            }
        ]
    }
    return {
        "eks:ListAddons": {"addons": [name]},
        "eks:DescribeAddon": {
            "addon": {"addonName": name, "addonVersion": version, "status": status, "health": {"issues": []}}
        },
        "eks:DescribeAddonVersions": offered,
    }
