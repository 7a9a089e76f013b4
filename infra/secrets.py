"""Stack `Secrets`: empty secrets and the role that reads them."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.secrets import AssumedReader, ModelSecrets
from modelyard.spec import Environment


class SecretsStack(EnvironmentStack):
    concern = "secrets"

    def __init__(self, scope: Construct, construct_id: str, *, settings: Environment) -> None:
        super().__init__(
            scope, construct_id, settings=settings, description="Modelyard: secrets by name, without values"
        )
        ModelSecrets(
            self,
            "Secrets",
            cluster_name=settings.cluster_name,
            names=settings.secrets.values(),
            reader=_assumed(settings),
            removal_policy=self.removal_policy,
        )


def _assumed(settings: Environment) -> AssumedReader | None:
    existing, arn = settings.cluster.existing, settings.secrets_reader
    if existing is None or existing.secrets_role is None or arn is None:
        return None
    return AssumedReader(name=arn.rpartition("/")[2], by=existing.secrets_role)
