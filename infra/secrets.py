"""Stack `Secrets`: empty secrets and the role that reads them."""

from __future__ import annotations

from constructs import Construct

from infra.environment_stack import EnvironmentStack
from modelyard.aws.secrets import ModelSecrets
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
            removal_policy=self.removal_policy,
        )
