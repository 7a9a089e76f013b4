"""A KMS key with the house defaults."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct


class EncryptionKey(kms.Key):
    """A customer-managed key that AWS rotates every year.

    Args:
        description: What it encrypts.
        refuse_grants: Whether only AWS services may create grants; not for EKS, whose CreateCluster would
            fail.
        removal_policy: What happens to the key when its stack is deleted; a destroyed key can be restored for
            a week.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        description: str,
        refuse_grants: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description=description,
            enable_key_rotation=True,
            removal_policy=removal_policy,
            # The shortest waiting period that KMS allows: only keys of throw-away environments are scheduled
            # for deletion.
            pending_window=Duration.days(7) if removal_policy == RemovalPolicy.DESTROY else None,
        )
        if refuse_grants:
            self.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="GrantsByServicesAlone",
                    effect=iam.Effect.DENY,
                    principals=[iam.AnyPrincipal()],
                    actions=["kms:CreateGrant"],
                    resources=["*"],
                    conditions={
                        "BoolIfExists": {
                            "kms:GrantIsForAWSResource": "false",
                            "aws:PrincipalIsAWSService": "false",
                        }
                    },
                )
            )
