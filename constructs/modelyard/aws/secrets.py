"""Secrets by name: the secrets are infrastructure, their values are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from modelyard.aws.encryption_key import EncryptionKey
from modelyard.aws.pod_identity import PodIdentityRole
from modelyard.names import EXTERNAL_SECRETS


@dataclass(frozen=True, kw_only=True)
class AssumedReader:
    """A role that an External Secrets assumes which is not of Modelyard."""

    name: str
    """Name of the role, which the SecretStore states."""
    by: str
    """ARN of the role that may assume it."""


class ModelSecrets(Construct):
    """Empty secrets in AWS Secrets Manager, and the role with which External Secrets reads exactly these.

    No value ever passes through a template, a parameter or a state file: an operator sets it once, with
    `modelyard secrets set NAME --env ENVIRONMENT`. A generated placeholder would be synced into the cluster
    and fail there as a wrong token; an empty secret fails as an empty secret.

    Args:
        cluster_name: The EKS cluster.
        names: Names in Secrets Manager, such as prod/inference/hf-token.
        namespace: Namespace of External Secrets.
        service_account: Service account of External Secrets.
        reader: Instead of these two: the role that an External Secrets assumes which is there already.
        removal_policy: What happens to secrets and key when their stack is deleted.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        names: Iterable[str],
        namespace: str = EXTERNAL_SECRETS,
        service_account: str = EXTERNAL_SECRETS,
        reader: AssumedReader | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, construct_id)
        self.key = EncryptionKey(
            self, "Key", description="Secrets of the model servers", removal_policy=removal_policy
        )
        """Encrypts the secrets."""
        description = "External Secrets: the secrets of models"
        self.reader: iam.Role
        """IAM role with which External Secrets reads them."""
        if reader:
            self.reader = _assumed_role(self, reader, description)
        else:
            self.reader = own = PodIdentityRole(self, "ReaderRole", description=description)
            own.associate(cluster_name=cluster_name, namespace=namespace, service_account=service_account)
        containers = Construct(self, "Secrets")
        # Two logical names may share a secret.
        self.secrets: Mapping[str, secretsmanager.CfnSecret] = MappingProxyType(
            {
                # The L1 construct, because the L2 generates a value if none is given.
                name: secretsmanager.CfnSecret(
                    containers,
                    name,
                    name=name,
                    description="Value put in by an operator; read by External Secrets",
                    kms_key_id=self.key.key_arn,
                )
                for name in sorted(set(names))
            }
        )
        """Name in Secrets Manager to the secret."""
        for secret in self.secrets.values():
            secret.apply_removal_policy(removal_policy)
        self.reader.add_to_policy(
            iam.PolicyStatement(
                actions=["secretsmanager:GetSecretValue", "secretsmanager:DescribeSecret"],
                resources=[secret.ref for secret in self.secrets.values()],
            )
        )
        self.key.grant_decrypt(self.reader)


def _assumed_role(scope: Construct, reader: AssumedReader, description: str) -> iam.Role:
    return iam.Role(
        scope,
        "AssumedReaderRole",
        role_name=reader.name,
        description=description,
        # The tags of a Pod Identity session are transitive, so they come along (EKS user guide, pod-id-abac).
        assumed_by=iam.ArnPrincipal(reader.by).with_session_tags(),
    )
